"""Sentence generators for the corpus of the starter models, in four languages.

A generator takes a `random.Random` and returns one sentence. The order of its calls is part of the corpus:
a pool's seed gives the same sentences only as long as it stays.

usage: python3 text.py [--count N] [--seed N]      prints examples
"""

import argparse
import random


def phrases(text):
    """Phrases divided by semicolons."""
    return [" ".join(phrase.split()) for phrase in text.split(";")]


EN_NAMES = """
    anna ben carla david emma felix grace henry isla jack karen leo maria noah olivia peter quinn rosa
    sam tina victor wendy alex nina oscar paula robert sarah thomas julia
""".split()
EN_CITIES = """
    london paris berlin madrid rome vienna oslo lisbon dublin prague boston chicago denver austin
    seattle toronto sydney tokyo
""".split()
EN_NOUNS = """
    meeting report budget project customer product server model recording transcript interview lecture
    speaker microphone file folder letter window garden kitchen table river mountain road bridge train
    station airport hospital school library market picture story question answer problem result number
    system memory graphics card computer keyboard screen battery cable engine driver update version
    release ticket contract invoice salary office team manager doctor teacher student patient nurse
    lawyer artist writer singer dancer cat dog horse bird fish tree flower apple bread coffee water
    dinner breakfast lunch morning evening weekend summer winter spring autumn storm rain snow wind sun
    moon star city village country island beach forest desert
""".split()
EN_ADJECTIVES = """
    new old small large long short quick slow quiet loud bright dark warm cold clean dirty empty full
    happy sad angry calm early late easy difficult important simple strange beautiful broken careful
    cheap expensive famous fresh friendly heavy light local modern natural open public private ready
    safe secret serious silent soft strong weak wide narrow young final first second last next previous
""".split()
EN_VERBS_PAST = """
    opened closed finished started found lost bought sold sent received wrote read watched heard called
    visited moved carried dropped fixed broke cleaned painted built designed tested checked reviewed
    approved rejected delayed cancelled planned explained described remembered forgot followed stopped
    saved deleted copied shared recorded transcribed
""".split()
EN_VERBS = """
    open close finish start find lose buy sell send receive write read watch hear call visit move carry
    drop fix break clean paint build design test check review approve reject delay cancel plan explain
    describe remember forget follow stop save delete copy share record transcribe
""".split()
EN_NUMBERS = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
    sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety
""".split()
EN_ADVERBS = """
    quickly slowly carefully quietly suddenly finally really almost never always often sometimes usually
    probably certainly simply
""".split()
EN_COLOURS = """
    red green blue yellow black white brown orange purple grey pink golden silver
""".split()
EN_TIMES = phrases("""
    today; tomorrow; yesterday; this morning; this afternoon; last night; next week; last week; on
    monday; on tuesday; on wednesday; on thursday; on friday; on saturday; on sunday; at noon; before
    lunch; after dinner; in january; in february; in march; in april; in may; in june; in july; in
    august; in september; in october; in november; in december; every day; once a month; two years ago;
    in an hour
""")
EN_PLACES = phrases("""
    in the garden; in the kitchen; at the station; at the office; near the river; behind the house;
    under the table; on the road; in the library; by the window; at the airport; in the hospital; across
    the bridge; on the screen; in the folder; at the market; on the beach; in the forest
""")
# Among them: sentences of the Harvard list (IEEE, 1969), usual for testing speech.
EN_FIXED = """
ask not what your country can do for you, ask what you can do for your country.
and so my fellow americans.
the quick brown fox jumps over the lazy dog.
the birch canoe slid on the smooth planks.
glue the sheet to the dark blue background.
it is easy to tell the depth of a well.
these days a chicken leg is a rare dish.
rice is often served in round bowls.
the juice of lemons makes fine punch.
the box was thrown beside the parked truck.
four hours of steady work faced us.
a large size in stockings is hard to sell.
the boy was there when the sun rose.
a rod is used to catch pink salmon.
the source of the huge river is the clear spring.
kick the ball straight and follow through.
help the woman get back to her feet.
a pot of tea helps to pass the evening.
smoky fires lack flame and heat.
the soft cushion broke the man's fall.
the salt breeze came across from the sea.
the girl at the booth sold fifty bonds.
thank you very much for listening.
good morning everyone and welcome to the meeting.
can you hear me now?
please speak a little louder.
let us move on to the next question.
i am not sure that i understand.
that is a very good point.
what do you think about this idea?
we are running out of time.
see you all next week.
the graphics card is out of memory.
all of the speech stays on this computer.
no network connection is needed.
drop a file on the window to start.
the transcript is ready to export.
testing, one, two, three.
hello, how are you today?
i am fine, thank you.
yes, of course.
no, not at all.
maybe later.
i agree with you.
that sounds great.
could you repeat that please?
who is speaking?
let me check the numbers.
""".strip().splitlines()
DE_NUMBERS = """
    null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn
    sechzehn siebzehn achtzehn neunzehn zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig
    hundert tausend
""".split()
ES_NUMBERS = """
    cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis
    diecisiete dieciocho diecinueve veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa
    cien mil
""".split()
FR_NUMBERS = """
    zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize
    dix-sept dix-huit dix-neuf vingt trente quarante cinquante soixante soixante-dix quatre-vingts
    quatre-vingt-dix cent mille
""".split()
EN_PROPER = {*EN_NAMES, *EN_CITIES, *"""
    monday tuesday wednesday thursday friday saturday sunday january february march april may june july
    august september october november december americans
""".split()}


def english_number(r):
    kind = r.random()
    if kind < 0.3:
        return r.choice(EN_NUMBERS)
    if kind < 0.55:
        return r.choice(EN_NUMBERS[20:]) + "-" + r.choice(EN_NUMBERS[1:10])
    if kind < 0.75:
        return r.choice(EN_NUMBERS[1:10]) + " hundred" + (" and " + r.choice(EN_NUMBERS[1:]) if r.random() < 0.7 else "")
    if kind < 0.9:
        thousands = r.choice(EN_NUMBERS[1:20]) + " thousand"
        return thousands + (" " + r.choice(EN_NUMBERS[1:10]) + " hundred" if r.random() < 0.5 else "")
    return " ".join(r.choice(EN_NUMBERS[:10]) for _ in range(r.randint(3, 6)))


def capitalised(sentence):
    """With a capital at the beginning, in names and in `I`."""
    sentence = sentence.strip()
    words = []
    for word in (sentence[0].upper() + sentence[1:]).split(" "):
        bare = word.strip(",.?!")
        if bare in EN_PROPER:
            word = word.replace(bare, bare.capitalize(), 1)
        if bare == "i":
            word = word.replace("i", "I", 1)
        words.append(word)
    return " ".join(words)


def english(r):
    noun = lambda: r.choice(EN_NOUNS)
    adjective = lambda: r.choice(EN_ADJECTIVES)
    past = lambda: r.choice(EN_VERBS_PAST)
    verb = lambda: r.choice(EN_VERBS)
    name = lambda: r.choice(EN_NAMES)
    when = lambda: r.choice(EN_TIMES)
    where = lambda: r.choice(EN_PLACES)
    city = lambda: r.choice(EN_CITIES)
    adverb = lambda: r.choice(EN_ADVERBS)
    loose_words = EN_NOUNS + EN_ADJECTIVES + EN_VERBS + EN_NUMBERS
    kind = r.randrange(22)
    with_article = lambda w: ("an " if w[0] in "aeiou" else "a ") + w
    sentence = [
        lambda: f"{name()} {past()} the {adjective()} {noun()} {when()}.",
        lambda: f"the {noun()} was {adjective()} and the {noun()} was {adjective()}.",
        lambda: f"{name()} and {name()} {past()} the {noun()} {where()}.",
        lambda: f"did you {verb()} the {noun()} {when()}?",
        lambda: f"we need to {verb()} the {adjective()} {noun()} before the {noun()}.",
        lambda: f"there are {english_number(r)} {r.choice(EN_COLOURS)} {noun()}s {where()}.",
        lambda: f"the number is {english_number(r)}.",
        lambda: f"i {adverb()} {past()} the {noun()} in {city()}.",
        lambda: f"{when()}, {name()} {past()} {with_article(adjective())} {noun()}.",
        lambda: f"the {noun()} {where()} is {adjective()}.",
        lambda: f"why did {name()} {verb()} the {noun()}?",
        lambda: f"please {verb()} the {noun()} and {verb()} the {noun()}.",
        lambda: f"{name()} lives in {city()}, but {name()} works in {city()}.",
        lambda: f"they will {verb()} the {adjective()} {noun()} {when()}.",
        lambda: f"i think the {noun()} is too {adjective()} for the {noun()}.",
        lambda: f"my {noun()} has {english_number(r)} {noun()}s.",
        lambda: f"the {r.choice(EN_COLOURS)} {noun()} is {adjective()}, {adjective()} and {adjective()}.",
        lambda: r.choice(EN_FIXED),
        lambda: r.choice(EN_FIXED),
        lambda: f"it costs {english_number(r)} dollars to {verb()} the {noun()}.",
        lambda: " ".join(r.choice(loose_words) for _ in range(r.randint(2, 7))) + ".",
        lambda: f"{name()} said that the {noun()} {past()} {adverb()}.",
    ][kind]()
    return capitalised(sentence)


def german(r):
    masculine = [
        "der Hund", "der Tisch", "der Garten", "der Zug", "der Bahnhof", "der Lehrer", "der Brief",
        "der Kaffee", "der Wald", "der Berg",
    ]
    feminine = [
        "die Katze", "die Küche", "die Stadt", "die Schule", "die Frage", "die Antwort", "die Straße",
        "die Brücke", "die Datei", "die Aufnahme",
    ]
    neuter = [
        "das Haus", "das Fenster", "das Buch", "das Wasser", "das Bild", "das Ergebnis", "das Gespräch",
        "das Modell", "das Brot", "das Kind",
    ]
    adjectives = """
        klein groß alt neu schnell langsam hell dunkel warm kalt sauber leer voll ruhig laut schön
        wichtig einfach schwer frei
    """.split()
    names = "Anna Paul Lena Max Marie Jonas Klara Lukas Sofia Felix".split()
    times = phrases("""
        heute; morgen; gestern; am Abend; am Montag; am Freitag; nächste Woche; jeden Tag; im Sommer; im
        Winter
    """)
    places = phrases("""
        im Garten; am Bahnhof; in der Küche; im Büro; in Berlin; in Hamburg; in München; vor dem Haus;
        hinter der Schule
    """)
    noun = lambda: r.choice(masculine + feminine + neuter)
    adjective = lambda: r.choice(adjectives)
    sentence = [
        lambda: f"{noun()} ist {adjective()} und {noun()} ist {adjective()}.",
        lambda: f"{r.choice(names)} wartet {r.choice(times)} {r.choice(places)}.",
        lambda: f"wo ist {noun()}?",
        lambda: f"{noun()} war {r.choice(times)} {adjective()}.",
        lambda: "die Nummer ist " + " ".join(r.choice(DE_NUMBERS[:28]) for _ in range(r.randint(1, 5))) + ".",
        lambda: f"{r.choice(names)} und {r.choice(names)} arbeiten {r.choice(places)}.",
        lambda: r.choice(
            [
                "guten Morgen, wie geht es dir?",
                "vielen Dank für die Einladung.",
                "das ist eine gute Idee.",
                "wir haben keine Zeit mehr.",
                "auf Wiedersehen und bis morgen.",
                "ich verstehe die Frage nicht.",
                "können Sie das bitte wiederholen?",
            ]
        ),
        lambda: f"ich glaube, {noun()} ist zu {adjective()}.",
    ][r.randrange(8)]()
    return sentence[0].upper() + sentence[1:]


def spanish(r):
    masculine = [
        "el perro", "el gato", "el jardín", "el tren", "el libro", "el café", "el problema",
        "el bosque", "el archivo", "el mercado",
    ]
    feminine = [
        "la casa", "la mesa", "la cocina", "la ciudad", "la escuela", "la pregunta", "la respuesta",
        "la calle", "la ventana", "la grabación",
    ]
    adjectives = "pequeño nuevo viejo rápido lento oscuro frío limpio vacío lleno tranquilo bonito".split()
    names = "Ana Pablo Lucía Carlos Marta Diego Elena Javier Sofía Luis".split()
    times = phrases("""
        hoy; mañana; ayer; por la noche; el lunes; el viernes; la próxima semana; todos los días; en
        verano; en invierno
    """)
    places = phrases("""
        en el jardín; en la estación; en la cocina; en la oficina; en Madrid; en Sevilla; en Barcelona;
        delante de la casa; detrás de la escuela
    """)

    def statement():
        if r.random() < 0.5:
            return f"{r.choice(masculine)} es {r.choice(adjectives)}"
        word = r.choice(adjectives)
        return f"{r.choice(feminine)} es {word[:-1] + 'a' if word.endswith('o') else word}"

    sentence = [
        lambda: f"{statement()} y {statement()}.",
        lambda: f"{r.choice(names)} espera {r.choice(places)} {r.choice(times)}.",
        lambda: f"¿dónde está {r.choice(masculine + feminine)}?",
        lambda: "el número es " + " ".join(r.choice(ES_NUMBERS) for _ in range(r.randint(1, 5))) + ".",
        lambda: f"{r.choice(names)} y {r.choice(names)} trabajan {r.choice(places)}.",
        lambda: r.choice(
            [
                "buenos días, ¿cómo estás?",
                "muchas gracias por la invitación.",
                "es una buena idea.",
                "no tenemos más tiempo.",
                "hasta luego y hasta mañana.",
                "no entiendo la pregunta.",
                "¿puede repetir eso, por favor?",
            ]
        ),
        lambda: f"creo que {statement()}.",
    ][r.randrange(7)]()
    first = 1 if sentence[0] == "¿" else 0
    return sentence[:first] + sentence[first].upper() + sentence[first + 1 :]


def french(r):
    masculine = [
        "le chien", "le chat", "le jardin", "le train", "le livre", "le café", "le problème",
        "le village", "le fichier", "le marché",
    ]
    feminine = [
        "la maison", "la table", "la cuisine", "la ville", "la question", "la réponse", "la rue",
        "la fenêtre", "la voiture", "la forêt",
    ]
    adjectives = "petit grand vieux rapide calme sombre froid propre vide tranquille".split()
    feminine_forms = {"petit": "petite", "grand": "grande", "vieux": "vieille", "froid": "froide"}
    names = "Anne Paul Lucie Marc Claire Louis Julie Hugo Camille Pierre".split()
    times = phrases("""
        aujourd'hui; demain; hier; ce soir; lundi; vendredi; la semaine prochaine; tous les jours; en
        été; en hiver
    """)
    places = phrases("""
        dans le jardin; à la gare; dans la cuisine; au bureau; à Paris; à Lyon; à Marseille; devant la
        maison; derrière la maison
    """)

    def statement():
        if r.random() < 0.5:
            return f"{r.choice(masculine)} est {r.choice(adjectives)}"
        word = r.choice(adjectives)
        return f"{r.choice(feminine)} est {feminine_forms.get(word, word)}"

    sentence = [
        lambda: f"{statement()} et {statement()}.",
        lambda: f"{r.choice(names)} attend {r.choice(places)} {r.choice(times)}.",
        lambda: f"où est {r.choice(masculine + feminine)}?",
        lambda: "le numéro est " + " ".join(r.choice(FR_NUMBERS) for _ in range(r.randint(1, 5))) + ".",
        lambda: f"{r.choice(names)} et {r.choice(names)} travaillent {r.choice(places)}.",
        lambda: r.choice(
            [
                "bonjour, comment allez-vous?",
                "merci beaucoup pour l'invitation.",
                "c'est une bonne idée.",
                "nous n'avons plus de temps.",
                "au revoir et à demain.",
                "je ne comprends pas la question.",
                "pouvez-vous répéter, s'il vous plaît?",
            ]
        ),
        lambda: f"je crois que {statement()}.",
    ][r.randrange(7)]()
    return sentence[0].upper() + sentence[1:]


GENERATORS = {"en": english, "de": german, "es": spanish, "fr": french}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Prints example sentences in each language.")
    parser.add_argument("--count", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    r = random.Random(arguments.seed)
    for language, generate in GENERATORS.items():
        for _ in range(arguments.count):
            print(language, generate(r))
