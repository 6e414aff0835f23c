"""What a stemmer doesn't know: stop words, irregular forms and number words, by language. Floor 2."""

from __future__ import annotations

from collections.abc import Mapping

_STOP_WORDS = {
    "english": """
    a about again am an and any are aren't as at be been being but by can can't could did didn't do does doesn't doing don't
    for from had has have having he her hers him his how i i'd i'll i'm i've if in into is isn't it it's its just let let's
    me my of off on or our ours please she should so some than that that's the their them then there these they this those
    to too us very was wasn't we we'd we're were what what's when where which who whom whose why will with won't would you
    you'd you're your yours
    """,
    "german": """
    aber als also am an auch auf aus bei beim bin bist da das dass dein deine dem den der des die dies diese dieser dieses du
    durch ein eine einem einen einer eines er es euch euer für hab habe haben hat hatte hatten ich ihm ihn ihr ihre im in ins
    ist ja kann kein keine man mein meine mich mir mit nach nicht noch nur ob oder ohne sein seine sich sie sind so soll und
    uns unser unsere um unter vom von vor wann war waren warum was welche welcher welches wem wen wenn wer werden wessen wie
    wieso wir wird wo woher wohin worden wurde wurden zu zum zur über
    """,
}
# Each group: the base form first, then the forms that no suffix rule leads back to it.
_FORMS = {
    "english": """
    arise arose arisen; awake awoke awoken; bear bore borne; beat beaten; become became; begin began begun; bend bent;
    bind bound; bite bit bitten; bleed bled; blow blew blown; break broke broken; breed bred; bring brought; build built;
    burn burnt; buy bought; catch caught; choose chose chosen; cling clung; come came; creep crept; deal dealt; dig dug;
    do done; draw drew drawn; dream dreamt; drink drank drunk; drive drove driven; dwell dwelt; eat ate eaten;
    fall fell fallen; feed fed; feel felt; fight fought; find found; flee fled; fling flung; fly flew flown;
    forbid forbade forbidden; forget forgot forgotten; forgive forgave forgiven; freeze froze frozen; get got gotten;
    give gave given; go goes went gone; grind ground; grow grew grown; hang hung; hear heard; hide hid hidden; hold held;
    keep kept; kneel knelt; know knew known; lay laid; lead led; lean leant; leap leapt; learn learnt; leave left; lend lent;
    lie lain; light lit; lose lost; make made; mean meant; meet met; mistake mistook mistaken; overcome overcame; pay paid;
    prove proven; rebuild rebuilt; redo redid redone; retell retold; rewrite rewrote rewritten; ride rode ridden;
    ring rang rung; rise rose risen; run ran; say said; see saw seen; seek sought; sell sold; send sent; sew sewn;
    shake shook shaken; shine shone; shoot shot; show shown; shrink shrank shrunk; sing sang sung; sink sank sunk; sit sat;
    sleep slept; slide slid; speak spoke spoken; speed sped; spell spelt; spend spent; spill spilt; spin spun; spit spat;
    spring sprang sprung; stand stood; steal stole stolen; stick stuck; sting stung; stride strode; strike struck stricken;
    strive strove striven; swear swore sworn; sweep swept; swell swollen; swim swam swum; swing swung; take took taken;
    teach taught; tear tore torn; tell told; think thought; throw threw thrown; undergo underwent undergone;
    understand understood; undertake undertook undertaken; undo undoes undid undone; wake woke woken; wear wore worn;
    weave wove woven; weep wept; win won; wind wound; withdraw withdrew withdrawn; write wrote written;
    analysis analyses; basis bases; better best; child children; crisis crises; criterion criteria; foot feet; goose geese;
    half halves; hypothesis hypotheses; index indices; kid kids; knife knives; loaf loaves;
    man men; matrix matrices; mouse mice; ox oxen; person people; phenomenon phenomena; shelf shelves; thief thieves;
    tooth teeth; vertex vertices; wife wives; wolf wolves; woman women; worse worst
    """,
}
_NUMBERS = {
    "english": """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
    nineteen twenty
    """,
    "german": """
    null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn
    neunzehn zwanzig
    """,
}


def stop_words(language: str) -> frozenset[str]:
    """Words that say nothing by themselves, question words among them; none for a language we have no list of."""
    return frozenset(_STOP_WORDS.get(language, "").split())


def regular_forms(language: str) -> Mapping[str, str]:
    """Irregular verbs and plurals to their base form, number words to digits; before stemming."""
    forms: dict[str, str] = {}
    for group in _FORMS.get(language, "").split(";"):
        base, *others = group.split() or [""]
        for other in others:
            forms[other] = base
    forms.update((word, str(number)) for number, word in enumerate(_NUMBERS.get(language, "").split()))
    return forms
