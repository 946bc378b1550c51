#!/usr/bin/env python3
"""Writes a set to measure a search with: 500 passages, and 100 questions that say in other words what one of
the passages says. No content word of a question is in its passage, in any form.

usage: scripts/retrieval/generate.py > tests/data/retrieval.json

Every event is told ten times, each time in another situation: a question names both, so that the event alone
leads to ten passages and the situation alone to fifty.
"""
import json
import random
import re
import sys

# What the passage says, what the question says.
SITUATIONS = [
    ("It was in January, and the whole lake was frozen.", "in the coldest weeks of winter"),
    ("We were on holiday at the seaside back then.", "during a vacation on the beach"),
    ("That was the day before the wedding.", "shortly ahead of getting married"),
    ("The baby was asleep upstairs all that time.", "with an infant in the cradle"),
    ("My father had just retired.", "after dad stopped working for good"),
    ("The railway was on strike that week.", "when no trains were running"),
    ("We had moved into the new flat a month earlier.", "soon after changing apartments"),
    ("It was the evening of the election.", "while ballots were being counted"),
    ("I was still at university, in my second year.", "as a college student"),
    ("The power had been out for two days.", "without any electricity"),
]

EVENTS = [
    ("We sold the boat to a man from the harbour, and he paid in cash.", "getting rid of a ship for money"),
    ("My brother fell off the ladder and broke his leg.", "an injured sibling"),
    ("The dog ran away, and we looked for him until midnight.", "a lost pet"),
    ("Somebody stole my wallet with all the cards in it.", "a thief taking a purse"),
    ("The cake burned, because I forgot to set the timer.", "a dessert ruined in the oven"),
    ("They offered me a job in another city, and I said yes.", "accepting new employment elsewhere"),
    ("The doctor told us that she is going to have twins.", "a pregnancy with two children"),
    ("My car broke down in the middle of the motorway.", "a vehicle failing on the highway"),
    ("We quarrelled about the inheritance, and my aunt left the room.", "relatives arguing over a legacy"),
    ("He taught me how to play the violin.", "learning a string instrument"),
    ("The roof leaked, and water ran down the walls.", "rain dripping into the house"),
    ("I missed the flight by five minutes.", "arriving too late at the airport"),
    ("She read her poems aloud, and everybody clapped.", "an audience applauding verses"),
    ("Our team lost the final by one goal.", "a defeat in the football championship"),
    ("The bank refused to lend us the money.", "a rejected request for credit"),
    ("I planted tomatoes and beans behind the shed.", "growing vegetables in the garden"),
    ("He snored so loudly that nobody could sleep.", "a noisy night because of one person's breathing"),
    ("The teacher caught them copying in the exam.", "pupils cheating on a test"),
    ("We saw a bear on the path, and we stood quite still.", "meeting a dangerous animal on a hike"),
    ("She cut her hair short and dyed it red.", "a change of hairstyle"),
    ("The police asked me what I had seen.", "being questioned as a witness by officers"),
    ("I learned that I am allergic to nuts.", "a reaction of the body to certain food"),
    ("They cancelled the concert because the singer was ill.", "a musical show called off"),
    ("My grandmother told us how she fled from the war.", "an old woman remembering being a refugee"),
    ("The lift got stuck between two floors.", "being trapped in an elevator"),
    ("We found an old letter in the attic.", "discovering handwritten mail under the roof"),
    ("He asked her to marry him, and she laughed.", "a proposal that was not taken seriously"),
    ("The factory closed, and three hundred people were dismissed.", "workers losing their jobs"),
    ("I gave up smoking after twenty years.", "quitting cigarettes"),
    ("The computer crashed, and my thesis was gone.", "losing written work to a technical failure"),
    ("A stranger helped me carry the piano.", "an unknown person lending a hand with heavy furniture"),
    ("We paid far too much for the hotel.", "overpriced accommodation"),
    ("The bees died, all four hives of them.", "insects that make honey perishing"),
    ("She won the race, although she had a cold.", "a runner coming first in spite of being sick"),
    ("They tore down the old theatre.", "demolishing a playhouse"),
    ("I got lost in the forest and slept under a tree.", "spending a night outdoors among the woods"),
    ("The children built a castle out of snow.", "kids making a fortress of ice"),
    ("He apologized for what he had said about my mother.", "saying sorry for an insult"),
    ("The river flooded the cellar.", "high water filling the basement"),
    ("We adopted a little girl from the orphanage.", "taking in a child without parents"),
    ("My tooth hurt so much that I could not eat.", "needing a dentist"),
    ("The soup was salty, and we sent it back to the kitchen.", "complaining about a meal at a restaurant"),
    ("She was elected to chair the committee.", "a woman chosen to lead a board"),
    ("The cat brought a live mouse into the bedroom.", "a feline with its prey indoors"),
    ("I forgot her birthday, and she cried.", "hurting somebody by not remembering an anniversary"),
    ("They discovered oil beneath the field.", "a natural resource found underground"),
    ("We painted the kitchen yellow.", "new colour on the walls where one cooks"),
    ("He lied about his age to join the army.", "becoming a soldier by pretending to be older"),
    ("A bird flew against the window and lay on the terrace.", "a winged creature hitting the glass"),
    ("The lawyer said that we could not win the case.", "advice from an attorney against going to court"),
]

ASIDES = [
    "I remember it as if it were yesterday.",
    "Nobody believed us at first.",
    "You know how these things go.",
    "Well, that is a long story.",
    "I have told you about it before, I think.",
    "That is how it began, anyway.",
    "Looking back, it seems funny.",
    "I would do it again, honestly.",
]

FORMS = ["the one about {event} {situation}", "where do they talk about {event} {situation}?", "{event} {situation}"]

# Words that say nothing about a subject.
EMPTY = set(
    """a about after again against ahead all although am among an and another any as asked at back be because before
    began being between by could did do does down far for from get gets getting got had has have having he her him
    his how i if in into is it its just lay left little made make making me more much my no nobody not of off old on
    one other our out over person quite said say says see seems set she so some somebody still taken taking talk
    than that the their them then there these they things think this those time to told too two under until up us
    was way we well were what when where while who whole why will with without would yes you your new going go
    goes ran said day days people any certain good""".split()
)


def stems(text):
    """Content words without their endings, so that "sold boats" and "boat" share one."""
    found = set()
    for word in re.findall(r"[a-z]+", text.lower()):
        if word in EMPTY:
            continue
        for ending in ("ing", "ed", "es", "s", "er", "en", "e"):
            if word.endswith(ending) and len(word) - len(ending) >= 3:
                word = word[: -len(ending)]
                break
        found.add(word)
    return found


def main():
    chance = random.Random(22)
    passages, questions = [], []
    pairs = [(event, situation) for event in range(len(EVENTS)) for situation in range(len(SITUATIONS))]
    for event, situation in pairs:
        aside = chance.choice(ASIDES)
        told = [SITUATIONS[situation][0], EVENTS[event][0]]
        passages.append(" ".join([*told, aside] if chance.random() < 0.5 else [aside, *told]))
    for event in range(len(EVENTS)):
        for situation in chance.sample(range(len(SITUATIONS)), 2):
            form = chance.choice(FORMS)
            text = form.format(event=EVENTS[event][1], situation=SITUATIONS[situation][1])
            answer = pairs.index((event, situation))
            shared = stems(text) & stems(passages[answer])
            if shared:
                sys.exit(f"{text!r} shares {shared} with {passages[answer]!r}")
            questions.append({"text": text, "passage": answer})
    json.dump({"passages": passages, "questions": questions}, sys.stdout, indent=1, ensure_ascii=False)
    print()


main()
