#!/usr/bin/env python3
"""Writes talks to measure chapters with: each has several subjects, which change at known segments.

usage: scripts/chapters/generate.py [SEED [ASIDES]] | cargo run -p steno --example chapters -- FOLDER_OF_A_MODEL

A subject has things that are talked about and sentences of its own; the rest is what is said in any talk. The
lengths of subjects vary from two and a half to six minutes. ASIDES is the share of what is said in any talk,
0.25 where it is not given. Between two subjects there is no pause, and no
sentence says that another one begins.
"""
import json
import random
import sys

SUBJECTS = {
    "boat": (
        ["the boat", "the harbour", "the sails", "the mast", "the engine below deck", "the anchor", "the crew", "the lighthouse"],
        ["We sailed along the coast until the wind turned.", "The hull has to be painted every spring.", "In the storm we nearly lost the rudder.", "You learn to read the waves after a while.", "The mooring fee went up again.", "At night you only see the buoys.", "My daughter can tie every knot there is.", "The tide was too low to leave the quay."],
    ),
    "garden": (
        ["the tomatoes", "the compost", "the greenhouse", "the roses", "the soil", "the seedlings", "the apple tree", "the slugs"],
        ["I water everything early in the morning.", "The frost killed half of the beans.", "Pruning is something that you have to learn.", "We dug a pond where the lawn was.", "The bees come as soon as the lavender blooms.", "Weeds grow faster than any vegetable.", "I sow carrots in March.", "The hedge has to be trimmed twice a year."],
    ),
    "budget": (
        ["the budget", "the taxes", "the invoices", "the accountant", "the loan", "the interest rate", "our expenses", "the auditors"],
        ["We spent more than we earned in the last quarter.", "The bank wants to see new figures.", "Payroll is the largest item by far.", "Somebody has to approve every payment.", "The revenue is lower than we forecast.", "We could save a lot on the rent.", "The grant runs out in December.", "I moved the deficit into the next year."],
    ),
    "surgery": (
        ["the surgeon", "the hospital", "the anaesthetic", "my knee", "the nurses", "the physiotherapy", "the bandage", "the pills"],
        ["The operation took four hours.", "I could not walk without crutches.", "The wound healed faster than expected.", "They took an X-ray and a blood sample.", "The pain was worst in the second night.", "My blood pressure was far too high.", "The ward was full, so I lay in the corridor.", "A doctor looked at the scar every day."],
    ),
    "election": (
        ["the election", "the candidates", "the ballots", "the parliament", "the campaign", "the voters", "the coalition", "the mayor"],
        ["The turnout was higher than ever.", "Both parties claimed that they had won.", "The polls were wrong by ten points.", "They counted the votes until the morning.", "She resigned from the council after the scandal.", "The debate on television changed many minds.", "A majority needs forty seats.", "The opposition demands a recount."],
    ),
    "music": (
        ["the orchestra", "the violin", "the melody", "the conductor", "the rehearsal", "the choir", "the piano", "the score"],
        ["The second movement is the hardest to play.", "She sang the aria without a microphone.", "We tuned our instruments for half an hour.", "The audience clapped between the songs.", "He composed the quartet at nineteen.", "The drummer came in a bar too early.", "I practise scales every evening.", "The acoustics of the hall are wonderful."],
    ),
    "software": (
        ["the server", "the database", "the bug", "the release", "the source code", "the tests", "the password", "the update"],
        ["The program crashed whenever two users logged in.", "We rewrote the parser over the weekend.", "Nobody had made a backup of the disk.", "The queries take far too long.", "It only fails in one browser.", "We deploy every Friday afternoon.", "The documentation describes an older version.", "A cache made everything ten times faster."],
    ),
    "cooking": (
        ["the soup", "the dough", "the oven", "the sauce", "the recipe", "the onions", "the spices", "the roast"],
        ["You have to knead it for ten minutes.", "I always put in too much salt.", "It simmers until the meat is tender.", "My grandmother used butter and nothing else.", "The cake was burnt on one side.", "Fry the garlic gently, or it turns bitter.", "We served it with rice and fresh herbs.", "The guests asked for a second helping."],
    ),
    "football": (
        ["the goalkeeper", "the coach", "the penalty", "the season", "the defenders", "the referee", "the stadium", "the league"],
        ["We lost the match in extra time.", "He scored twice before the break.", "The striker twisted his ankle.", "They got a red card after five minutes.", "Training starts again in July.", "The fans sang until the last minute.", "Our midfield was too slow.", "The transfer cost them eighty million."],
    ),
    "school": (
        ["the pupils", "the teacher", "the exam", "the homework", "the classroom", "the timetable", "the headmistress", "the textbooks"],
        ["Half of the class failed in mathematics.", "The children learn to read in the first year.", "Marks are given at the end of the term.", "The lessons begin at eight.", "There were too few chairs for everybody.", "Parents may visit on Wednesdays.", "She explained fractions with a pizza.", "The youngest are afraid of the playground."],
    ),
    "climate": (
        ["the glaciers", "the emissions", "the drought", "the temperature", "the sea level", "the forests", "the carbon", "the heat waves"],
        ["The last ten years were the warmest on record.", "Rain falls in fewer and heavier storms.", "The ice melts from below.", "Coal is still burned for electricity.", "The models agree on that.", "Rivers dry up earlier each summer.", "Permafrost releases methane when it thaws.", "Wind and solar power grow quickly."],
    ),
    "house": (
        ["the roof", "the plumber", "the bathroom", "the landlord", "the insulation", "the stairs", "the walls", "the heating"],
        ["We tore out the old carpet in the hall.", "Water came through the ceiling again.", "The tiles were laid in two days.", "The windows have to be replaced before winter.", "The wiring is from the fifties.", "An architect drew the plans for the extension.", "The neighbours complained about the drilling.", "We plastered the bedroom ourselves."],
    ),
}

# What is said of the things of any subject.
FRAMES = [
    "And then there is {a}, of course.",
    "I thought about {a} for a long time.",
    "You can't talk about {a} without {b}.",
    "With {a} it was different.",
    "What surprised me most was {a}.",
    "First it was {a}, and then it was {b}.",
    "Nobody had told us about {a}.",
    "So we had another look at {a}.",
    "That is the trouble with {a}.",
    "It all depends on {a}, I would say.",
    "Somebody asked me about {a} last week.",
    "It has a lot to do with {a} and {b}.",
]

# What is said in any talk.
ASIDES = [
    "I remember it as if it were yesterday.",
    "Nobody believed us at first.",
    "You know how these things go.",
    "Well, that is a long story.",
    "I have told you about that before, I think.",
    "That is how it began, anyway.",
    "Looking back, it seems funny.",
    "I would do it again, honestly.",
    "But that is only what I think.",
    "And that took us the whole year.",
    "It was not easy, as you can imagine.",
    "Yes, exactly.",
    "Let me think about that for a moment.",
    "It depends on whom you ask.",
    "We laughed about it afterwards.",
]

TALKS = 24
# Of the sentences; the rest are the subject's own.
ASIDE, FRAME, STRAY = 0.25, 0.35, 0.04
# Seconds.
SUBJECT = (150, 360)


def talk(chance, aside):
    subjects = chance.sample(sorted(SUBJECTS), chance.randint(3, 9))
    segments, begins, time = [], [], 0.0
    for subject in subjects:
        begins.append(len(segments))
        things, sentences = SUBJECTS[subject]
        end = time + chance.uniform(*SUBJECT)
        recent = []
        while time < end:
            kind = chance.random()
            if kind < aside:
                text = chance.choice(ASIDES)
            elif kind < aside + STRAY:
                # A thought of something else.
                text = chance.choice(SUBJECTS[chance.choice(sorted(SUBJECTS))][1])
            elif kind < aside + STRAY + FRAME * (1 - aside):
                a, b = chance.sample(things, 2)
                text = chance.choice(FRAMES).format(a=a, b=b)
            else:
                text = chance.choice([one for one in sentences if one not in recent])
                recent = [*recent, text][-5:]
            # Fourteen characters a second, and a pause.
            length = round(len(text) / 14 + chance.uniform(0.2, 1.6), 2)
            segments.append({"start": round(time, 2), "end": round(time + length - 0.1, 2), "text": text})
            time += length
    return {"subjects": subjects, "begins": begins, "segments": segments}


def main():
    chance = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 23)
    aside = float(sys.argv[2]) if len(sys.argv) > 2 else ASIDE
    talks = [talk(chance, aside) for _ in range(TALKS)]
    print('{"talks": [', file=sys.stdout)
    print(",\n".join(json.dumps(one) for one in talks))
    print("]}")


main()
