"""The built-in corpus: correct German by a table of whole sentences, and the promises of `regard.demo.corpus`."""

import random
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import pytest
import sacrebleu

from regard.demo.corpus import (
    PATTERNS,
    SHORT,
    SPLITS,
    Sentence,
    corpus,
    count_pairs,
    dictionary_baseline,
    every,
    lemma_count,
    pattern_names,
    split_of,
)
from regard.demo.english_german.adjectives import ADJECTIVES, Adjective
from regard.demo.english_german.clauses import (
    Clause,
    Phrase,
    english_question,
    english_statement,
    german_infinitive,
    verb_first,
    verb_last,
    verb_second,
)
from regard.demo.english_german.drawing import (
    BARE,
    EVERY,
    MINE,
    NUMBERS,
    THE,
    THESE,
    THIS,
    A,
    adjectives,
    clock_times,
    determiners,
    draw_noun_phrase,
    echo_of,
    pronoun_subjects,
)
from regard.demo.english_german.function_words import NAMES
from regard.demo.english_german.inflection import (
    Determiner,
    contract,
    imperative,
    noun_phrase,
    present,
    progressive,
    relative_pronoun,
    third_person,
)
from regard.demo.english_german.lexicon import dictionary
from regard.demo.english_german.nouns import NOUNS, Noun
from regard.demo.english_german.verbs import BE, VERBS, Verb
from regard.errors import UsageError

ME, YOU, HE, SHE, WE, THEY = pronoun_subjects()


def noun(english: str) -> Noun:
    return next(noun for noun in NOUNS if noun.english == english)


def verb(english: str) -> Verb:
    return next(verb for verb in (*VERBS, BE) if verb.english == english)


def adjective(english: str) -> Adjective:
    return next(adjective for adjective in ADJECTIVES if adjective.english == english)


def person(english: str, determiner: Determiner = THE) -> Phrase:
    return Phrase(*noun_phrase(noun(english), determiner, case="nominative"), noun=noun(english))


def thing(english: str, determiner: Determiner = THE, case: str = "accusative") -> Phrase:
    slot = "dative" if case == "dative" else "definite" if determiner.known else "indefinite"
    return Phrase(*noun_phrase(noun(english), determiner, case=case), slot)


# --- words and phrases ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "determiner", "quality", "case", "plural", "english", "german"),
    [
        ("man", THE, "old", "nominative", False, "the old man", "der alte Mann"),
        ("man", THE, "old", "accusative", False, "the old man", "den alten Mann"),
        ("man", THE, "old", "dative", False, "the old man", "dem alten Mann"),
        ("man", A, "old", "nominative", False, "an old man", "ein alter Mann"),
        ("woman", A, "tall", "dative", False, "a tall woman", "einer großen Frau"),
        ("book", A, "expensive", "accusative", False, "an expensive book", "ein teures Buch"),
        ("child", MINE[4], "tired", "nominative", False, "our tired child", "unser müdes Kind"),
        ("child", MINE[4], "tired", "dative", True, "our tired children", "unseren müden Kindern"),
        ("boy", THE, None, "accusative", False, "the boy", "den Jungen"),
        ("student", A, None, "dative", False, "a student", "einem Studenten"),
        ("neighbor", THIS, None, "nominative", False, "this neighbor", "dieser Nachbar"),
        ("queen", EVERY, None, "nominative", False, "every queen", "jede Königin"),
        ("mouse", THESE, "small", "accusative", True, "these small mice", "diese kleinen Mäuse"),
        ("car", NUMBERS[1], "new", "dative", True, "three new cars", "drei neuen Autos"),
        ("apple", NUMBERS[0], "sweet", "accusative", True, "two sweet apples", "zwei süße Äpfel"),
        ("coffee", BARE, "cold", "accusative", False, "cold coffee", "kalten Kaffee"),
        ("milk", BARE, "warm", "nominative", False, "warm milk", "warme Milch"),
        ("beer", BARE, "cold", "dative", False, "cold beer", "kaltem Bier"),
        ("girl", THE, "clever", "dative", True, "the clever girls", "den klugen Mädchen"),
    ],
)
def test_noun_phrase(
    word: str, determiner: Determiner, quality: str | None, case: str, plural: bool, english: str, german: str
) -> None:
    described = adjective(quality) if quality else None
    assert noun_phrase(noun(word), determiner, described, case=case, plural=plural) == (english, german)


def test_prepositions_melt_into_articles() -> None:
    assert contract("in", "dem Garten") == "im Garten"
    assert contract("in", "das alte Haus") == "ins alte Haus"
    assert contract("zu", "der Schule") == "zur Schule"
    assert contract("in", "der Schule") == "in der Schule"
    assert contract("auf", "dem Tisch") == "auf dem Tisch"


@pytest.mark.parametrize(
    ("english", "forms"),
    [
        ("read", "lese liest liest lesen lesen"),
        ("drive", "fahre fährst fährt fahren fahren"),
        ("work", "arbeite arbeitest arbeitet arbeiten arbeiten"),
        ("feed", "füttere fütterst füttert füttern füttern"),
        ("invite", "lade lädst lädt laden laden"),
        ("greet", "grüße grüßt grüßt grüßen grüßen"),
        ("like", "mag magst mag mögen mögen"),
        ("be", "bin bist ist sind sind"),
    ],
)
def test_german_present(english: str, forms: str) -> None:
    assert [present(verb(english), person) for person in range(5)] == forms.split()


def test_commands_change_e_but_not_a() -> None:
    found = {
        word: imperative(verb(word)) for word in ("read", "give", "carry", "open", "wash", "invite", "repair", "wait")
    }
    expected = "lies gib trag öffne wasch lade repariere warte"
    assert list(found.values()) == expected.split()


def test_english_forms() -> None:
    assert [third_person(word) for word in ("wash", "go", "carry", "play", "have", "look for", "tidy up")] == [
        "washes", "goes", "carries", "plays", "has", "looks for", "tidies up",
    ]  # fmt: skip
    assert [progressive(word) for word in ("run", "lie", "write", "visit", "sleep", "get up", "see", "draw", "open")] == [
        "running", "lying", "writing", "visiting", "sleeping", "getting up", "seeing", "drawing", "opening",
    ]  # fmt: skip


def test_relative_pronouns_and_pronouns_follow_the_gender() -> None:
    assert [relative_pronoun(noun("man"), case, False) for case in ("nominative", "accusative", "dative")] == [
        "der", "den", "dem",
    ]  # fmt: skip
    assert relative_pronoun(noun("girl"), "nominative", False) == "das"
    assert relative_pronoun(noun("woman"), "dative", True) == "denen"
    assert [echo_of(noun(word), False) for word in ("dog", "cat", "horse", "man", "girl", "child")] == [
        ("it", "er"), ("it", "sie"), ("it", "es"), ("he", "er"), ("she", "sie"), ("it", "es"),
    ]  # fmt: skip


def test_half_hours_count_towards_the_next() -> None:
    assert ("at half past six", "um halb sieben") in [(time.english, time.german) for time in clock_times()]


# --- clauses ----------------------------------------------------------------------------------------------------------

YESTERDAY = Phrase("yesterday", "gestern", "time")
OFTEN = Phrase("often", "oft", "time", early=True)
GARDEN = Phrase("in the garden", "im Garten", "place")
NO_BOOK = Phrase("a book", "kein Buch", "indefinite")
HER = Phrase("her", "sie", "pronoun")

CLAUSES = [
    (
        Clause(person("man"), verb("call"), "past", (thing("doctor"), YESTERDAY)),
        "the man called the doctor yesterday",
        "did the man call the doctor yesterday",
        "der Mann hat gestern den Arzt angerufen",
        "der Mann gestern den Arzt angerufen hat",
    ),
    (
        Clause(person("woman"), verb("call"), "present", (thing("doctor"), OFTEN)),
        "the woman often calls the doctor",
        "does the woman often call the doctor",
        "die Frau ruft oft den Arzt an",
        "die Frau oft den Arzt anruft",
    ),
    (
        Clause(ME, verb("go"), "past", (Phrase("into the garden", "in den Garten", "goal"),), negative=True),
        "I did not go into the garden",
        "did I not go into the garden",
        "ich bin nicht in den Garten gegangen",
        "ich nicht in den Garten gegangen bin",
    ),
    (
        Clause(YOU, verb("read"), "progressive", (thing("book"),)),
        "you are reading the book",
        "are you reading the book",
        "du liest gerade das Buch",
        "du gerade das Buch liest",
    ),
    (
        Clause(HE, verb("read"), "present", (NO_BOOK, GARDEN), negative=True),
        "he does not read a book in the garden",
        "does he not read a book in the garden",
        "er liest im Garten kein Buch",
        "er im Garten kein Buch liest",
    ),
    (
        Clause(HE, verb("read"), "present", (thing("book"), GARDEN), negative=True),
        "he does not read the book in the garden",
        "does he not read the book in the garden",
        "er liest das Buch nicht im Garten",
        "er das Buch nicht im Garten liest",
    ),
    (
        Clause(WE, verb("invite"), "want", (HER, YESTERDAY), negative=True),
        "we do not want to invite her yesterday",
        "do we not want to invite her yesterday",
        "wir wollen sie gestern nicht einladen",
        "wir sie gestern nicht einladen wollen",
    ),
    (
        Clause(SHE, verb("give"), "can", (thing("child", THE, "dative"), thing("apple", A)), negative=False),
        "she can give the child an apple",
        "can she give the child an apple",
        "sie kann dem Kind einen Apfel geben",
        "sie dem Kind einen Apfel geben kann",
    ),
    (
        Clause(THEY, verb("sing"), "likes"),
        "they like to sing",
        "do they like to sing",
        "sie singen gern",
        "sie gern singen",
    ),
    (
        Clause(ME, BE, "past", (Phrase("tired", "müde", "predicate"),), negative=True),
        "I was not tired",
        "was I not tired",
        "ich war nicht müde",
        "ich nicht müde war",
    ),
    (
        Clause(person("aunt"), verb("have"), "past", (thing("dog", A),)),
        "the aunt had a dog",
        "did the aunt have a dog",
        "die Tante hatte einen Hund",
        "die Tante einen Hund hatte",
    ),
]


@pytest.mark.parametrize(("clause", "statement", "question", "second", "last"), CLAUSES)
def test_clause(clause: Clause, statement: str, question: str, second: str, last: str) -> None:
    assert english_statement(clause) == statement
    assert english_question(clause) == question
    assert verb_second(clause) == second
    assert verb_last(clause) == last


def test_a_question_begins_with_the_verb() -> None:
    clause = CLAUSES[0][0]
    assert verb_first(clause) == "hat der Mann gestern den Arzt angerufen"


def test_zu_goes_between_prefix_and_verb() -> None:
    clause = CLAUSES[1][0]
    assert german_infinitive(replace(clause, parts=clause.parts[:1])) == "den Arzt anzurufen"
    assert german_infinitive(Clause(ME, verb("read"), "present", (thing("book"),))) == "das Buch zu lesen"


def test_cannot_is_one_word() -> None:
    assert english_statement(Clause(ME, verb("swim"), "can", negative=True)) == "I cannot swim"


# --- the corpus -------------------------------------------------------------------------------------------------------

# The first sentence of each pattern in the training corpus, read and found right.
EXAMPLES = """
Their monkeys follow the farmer at two o'clock.
    Ihre Affen folgen um zwei Uhr dem Bauern.
A student waited for this polite teacher three years ago.
    Ein Student hat vor drei Jahren auf diesen höflichen Lehrer gewartet.
Paul is driving over the bridge.
    Paul fährt gerade über die Brücke.
They will get up at ten o'clock.
    Sie werden um zehn Uhr aufstehen.
A guest wants to swim in the cold river on Wednesday.
    Ein Gast will am Mittwoch im kalten Fluss schwimmen.
These friends like to help a daughter.
    Diese Freunde helfen gern einer Tochter.
Their friendly duck does not see a king.
    Ihre freundliche Ente sieht keinen König.
Paul must sing slowly in a hotel.
    Paul muss langsam in einem Hotel singen.
Our teacher drew the beautiful forest without this king.
    Unser Lehrer hat den schönen Wald ohne diesen König gezeichnet.
At half past nine his duck must eat the delicious cakes.
    Um halb zehn muss seine Ente die leckeren Kuchen essen.
In the kitchen a curious tourist sings.
    In der Küche singt ein neugieriger Tourist.
His monkey was too thirsty.
    Sein Affe war zu durstig.
Her hotels are as modern as their house.
    Ihre Hotels sind so modern wie ihr Haus.
The ring is under the table.
    Der Ring ist unter dem Tisch.
In Berlin there is a long bridge.
    In Berlin gibt es eine lange Brücke.
The white lamp belongs to the singers.
    Die weiße Lampe gehört den Sängern.
This boy is three years old.
    Dieser Junge ist drei Jahre alt.
This radio costs ninety euros.
    Dieses Radio kostet neunzig Euro.
Thomas has worked in the office for eight months.
    Thomas arbeitet seit acht Monaten im Büro.
Must her bus depart at half past ten?
    Muss ihr Bus um halb elf abfahren?
Will you listen to this child soon?
    Wirst du bald diesem Kind zuhören?
Who laughed six days ago?
    Wer hat vor sechs Tagen gelacht?
What is this son turning on?
    Was schaltet dieser Sohn gerade ein?
Where are these children driving?
    Wohin fahren diese Kinder gerade?
When will a boy sit in the village?
    Wann wird ein Junge im Dorf sitzen?
Which tomatoes did their neighbors cook?
    Welche Tomaten haben ihre Nachbarn gekocht?
How many spoons did the guests buy?
    Wie viele Löffel haben die Gäste gekauft?
How big was the bakery?
    Wie groß war die Bäckerei?
Please listen to seven polite fathers!
    Hör bitte sieben höflichen Vätern zu!
Do not cook the tomato!
    Koch die Tomate nicht!
The pigs stayed at the cold lake because they came back.
    Die Schweine sind am kalten See geblieben, weil sie zurückgekommen sind.
We stand next to the hotel, for the thirsty students forget newspapers.
    Wir stehen neben dem Hotel, denn die durstigen Studenten vergessen Zeitungen.
Although he is too polite, he comes to Hamburg.
    Obwohl er zu höflich ist, kommt er nach Hamburg.
If it is raining, a happy father can sell the hat.
    Wenn es regnet, kann ein glücklicher Vater den Hut verkaufen.
If this cat comes over a bridge, it can follow the clever monkey.
    Wenn diese Katze über eine Brücke kommt, kann sie dem klugen Affen folgen.
I came to Cologne when their mouse stood in front of the old school.
    Ich bin nach Köln gekommen, als ihre Maus vor der alten Schule gestanden hat.
You hope that her thirsty child can look at six dogs.
    Du hoffst, dass ihr durstiges Kind sechs Hunde ansehen kann.
The sick king asks why her doctors will listen to this tourist.
    Der kranke König fragt, warum ihre Ärzte diesem Touristen zuhören werden.
Two kings who baked these cookies were sick.
    Zwei Könige, die diese Kekse gebacken haben, waren krank.
You see these bakers who work in a house.
    Du siehst diese Bäcker, die in einem Haus arbeiten.
This key that we lose is beautiful.
    Dieser Schlüssel, den wir verlieren, ist schön.
Anna will forget to show his teacher our clock.
    Anna wird vergessen, seinem Lehrer unsere Uhr zu zeigen.
A son comes to Vienna in order to close two dirty windows.
    Ein Sohn kommt nach Wien, um zwei schmutzige Fenster zu schließen.
Their monkey runs through the forest and a child turns off her cameras.
    Ihr Affe läuft durch den Wald und ein Kind schaltet ihre Kameras aus.
Every queen was sick, so she woke up.
    Jede Königin war krank, deshalb ist sie aufgewacht.
"""


@pytest.fixture(scope="module")
def train() -> list[Sentence]:
    return corpus("train", 15_000)


def test_sentences_of_each_pattern(train: list[Sentence]) -> None:
    first: dict[str, Sentence] = {}
    for sentence in train:
        first.setdefault(sentence.pattern, sentence)
    found = "\n".join(f"{first[name].source}\n    {first[name].target}" for name in pattern_names())
    assert found == EXAMPLES.strip()


def test_the_same_seed_gives_the_same_sentences_in_another_process(train: list[Sentence]) -> None:
    program = "from regard.demo.corpus import corpus\nfor s in corpus('train', 50): print(ascii(s.source + s.target))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.split("\n")[:-1] == [ascii(sentence.source + sentence.target) for sentence in train[:50]]
    assert corpus("train", 50, seed=2) != train[:50]


def test_a_corpus_has_n_different_sentences(train: list[Sentence]) -> None:
    assert len({sentence.source for sentence in train}) == len(train) == 15_000
    assert corpus("train", 100) == train[:100]
    assert corpus("test", 0) == []


def test_splits_never_meet(train: list[Sentence]) -> None:
    held_out = [*corpus("valid", 300), *corpus("test", 300)]
    assert len({sentence.source for sentence in held_out}) == 600
    assert {sentence.source for sentence in train}.isdisjoint(sentence.source for sentence in held_out)
    # By construction, not by luck: the sentence itself names its split.
    for split in SPLITS:
        assert {split_of(sentence) for sentence in corpus(split, 50, seed=7)} == {split}


def test_long_is_longer_than_any_other(train: list[Sentence]) -> None:
    long = corpus("long", 300)
    others = [*train, *corpus("valid", 300), *corpus("test", 300)]
    for side in ("source", "target"):
        longest = max(len(getattr(sentence, side).split()) for sentence in others)
        assert longest <= SHORT < min(len(getattr(sentence, side).split()) for sentence in long)
        assert max(len(getattr(sentence, side).split()) for sentence in long) > SHORT + 8


def test_one_english_sentence_has_one_german() -> None:
    chooser = random.Random(3)
    translations: dict[str, str] = {}
    for _ in range(30_000):
        english, german, mark = chooser.choice(PATTERNS)(chooser)
        assert translations.setdefault(english + mark, german + mark) == german + mark
    assert len(translations) > 28_000


def test_sentences_are_cased_and_end_in_a_mark(train: list[Sentence]) -> None:
    for sentence in train:
        for text in (sentence.source, sentence.target):
            assert text[0].isupper()
            assert text[-1] in ".?!"
            assert "  " not in text and " ," not in text and ",," not in text and ",." not in text
        assert sentence.source[-1] == sentence.target[-1]


def test_a_and_an(train: list[Sentence]) -> None:
    for sentence in train[:5000]:
        words = sentence.source.rstrip(".?!").split()
        for article, following in pairwise(words):
            if article.lower() in ("a", "an"):
                assert (article.lower() == "an") == (following[0] in "aeiou"), sentence.source


def test_size() -> None:
    assert lemma_count() >= 300
    assert len(pattern_names()) >= 20
    assert len(set(pattern_names())) == len(PATTERNS)
    assert count_pairs() > 1_000_000


def test_every_tries_all_paths_once() -> None:
    def rule(chooser: random.Random) -> str:
        first = chooser.choice("ab")
        return first + (chooser.choice("xyz") if first == "a" else "")

    assert list(every(rule)) == ["ax", "ay", "az", "b"]
    assert list(every(lambda chooser: "fixed")) == ["fixed"]


def test_every_agrees_with_drawing() -> None:
    def rule(chooser: random.Random) -> str:
        return draw_noun_phrase(chooser, ("drink",), "accusative").english

    drawn, possible = {rule(random.Random(seed)) for seed in range(4000)}, set(every(rule))
    assert drawn <= possible
    assert len(drawn) > 0.9 * len(possible)


def test_every_word_can_be_described_and_determined() -> None:
    for word in NOUNS:
        assert adjectives(word), word.english
        assert determiners(word, False, "subject"), word.english


def test_each_lemma_is_met_often(train: list[Sentence]) -> None:
    words = " ".join(f" {sentence.source.rstrip('.?!').lower()} " for sentence in train).replace(",", "")
    for word in NOUNS:
        count = words.count(f" {word.english} ") + (words.count(f" {word.plural} ") if word.plural else 0)
        assert count >= 20, (word.english, count)


def test_the_order_must_be_learnt() -> None:
    test = corpus("test", 500)
    baseline = [dictionary_baseline(sentence.source) for sentence in test]
    score = sacrebleu.corpus_bleu(baseline, [[sentence.target for sentence in test]]).score
    assert 10 < score < 45


def test_the_dictionary_keeps_the_english_order() -> None:
    assert dictionary_baseline("The old man called the doctors, but I slept!") == (
        "Die alte Mann angerufen die Ärzte, aber ich geschlafen!"
    )
    assert dictionary_baseline("Where does Anna live?") == "Wo tut Anna wohnen?"


def test_the_dictionary_knows_every_word(train: list[Sentence]) -> None:
    words = {word for sentence in train for word in sentence.source.rstrip(".?!").replace(",", "").split()}
    unknown = {word for word in words if word not in dictionary() and word.lower() not in dictionary()}
    assert unknown == {name for name, _ in NAMES}


def test_a_wrong_split_is_told() -> None:
    with pytest.raises(UsageError) as caught:
        corpus("tests", 1)
    assert str(caught.value) == "The built-in corpus has no part named 'tests'.\nDid you mean test?"
