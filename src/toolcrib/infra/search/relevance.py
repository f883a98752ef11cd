"""Score how well a tool answers a question in plain words.

Rare words count for more than common ones, and those in a tool's name for more than others. A question is a list of ideas: a word
of the question and what else may stand for it. Other forms of the word have the same stem; synonyms and corrections of slips weigh
less. A tool is a list of stems for each of its fields.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from toolcrib.infra.search import MAX_FIELD, words_in_order

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from toolcrib.infra.search import Row

MAX_LETTERS = 1_000
MAX_IDEAS = 12

# Tuned on half of the questions in benchmarks/questions.py.
SYNONYM, CORRECTION = 0.4, 0.6
NAME, DESCRIPTION, TAG, PARAMETER = 2.0, 1.0, 1.0, 0.5
# How much the length of a field lowers its weight, and from which length on.
LENGTH_OF_NAME, LENGTH_OF_DESCRIPTION, LENGTH_OF_PARAMETERS = 0.3, 0.75, 0.5
USUAL_NAME, USUAL_DESCRIPTION, USUAL_PARAMETERS = 2, 12, 4
# How soon repetitions of a word add nothing.
SATURATION = 1.2

# An ending, its replacement, and the minimal length of the rest.
_PLURALS = (("sses", "ss", 2), ("ies", "y", 2), ("ches", "ch", 2), ("shes", "sh", 2), ("xes", "x", 2), ("s", "", 3))
_TENSES = (("ying", "y", 2), ("ing", "", 3), ("ied", "y", 2), ("ed", "", 3))
_ENDINGS = (
    ("ization", "", 4),
    ("isation", "", 4),
    ("ations", "", 4),
    ("ation", "", 4),
    ("ator", "", 4),
    ("ative", "", 4),
    ("ize", "", 4),
    ("ise", "", 4),
    ("iz", "", 4),
    ("is", "", 5),
    ("ate", "", 4),
    ("at", "", 4),
    ("ment", "", 4),
    ("ness", "", 4),
    ("able", "", 4),
    ("ible", "", 4),
    ("ively", "", 4),
    ("ally", "", 4),
    ("ly", "", 4),
    ("ity", "", 4),
    ("ion", "", 4),
    ("ive", "", 4),
    ("er", "", 4),
    ("or", "", 4),
    ("al", "", 5),
)
_NO_PLURAL = re.compile(r".*(ss|us|is)")
_DOUBLED = re.compile(r".*([bdgmnprt])\1")
_VOWEL = re.compile(r".*[aeiouy]")

STOP_WORDS = """
a about above after again all also am an and any are as at be been before being below between both but by can cannot
could did do does doing done each every few for from further had has have having he help her here him his how i if in
into is it its itself just let like lot may me might more most much must my need needs no nor not now of off on once
one only or other our out over own per please same she should so some something such tell than that the their them
then there these they thing things this those through to tool too under until up us use used using very want was way
we well were what when where which while who whom whose why will with without would you your
"""

# Phrases whose single words would mislead.
PHRASES = """
how many = count number
how much = amount
how often = count frequency
how long = duration length time
how big = size
how large = size
how far = distance
how old = age
what time = time clock
get rid of = delete
take away = remove
look up = find
look for = find
find out = get
log in = login
sign in = login
log on = login
log out = logout
sign out = logout
sign up = register
turn on = enable
switch on = enable
turn off = disable
switch off = disable
set up = configure
work out = calculate
add up = sum
put together = join
take apart = split
go through = iterate walk
fill in = complete
give up = timeout cancel
carry out = execute
bring back = restore
money back = refund
give back = return refund
pay back = refund
upside down = reverse
the other way round = reverse
at the same time = concurrent parallel
one after another = sequential
not a number = nan
whole number = integer
upper case = uppercase
lower case = lowercase
file name = filename
time zone = timezone
user name = username
data base = database
web page = url page
web site = url website
web address = url
home page = url page
phone number = phone
zip code = postcode
regular expression = regex
least common = rarest
free space = available
"""

# Words between two commas are synonyms where tools are concerned.
SYNONYMS = """
delete remove erase unlink discard drop destroy purge clear wipe rm,
get fetch retrieve obtain read receive load return, list enumerate show display,
create make add new build generate construct produce, insert add append put, send post deliver submit transmit,
find search lookup locate discover look seek query, convert transform turn translate change cast,
calculate compute evaluate determine, copy duplicate clone replicate, move relocate rename transfer, open launch start,
run execute invoke call start launch spawn perform, stop end quit exit kill terminate halt cancel abort finish,
close shut, check verify validate test whether ensure, change modify update edit alter set adjust switch,
replace substitute swap exchange, save store write dump persist keep record, restore recover undo revert rollback,
join combine merge concatenate unite glue connect together, split divide break separate partition chop,
cut trim truncate shorten strip crop, connect attach link, disconnect detach, enable activate allow permit,
disable deactivate forbid block deny, configure setup set setting option, install setup, register subscribe enrol,
book reserve, schedule plan, notify alert inform remind, share publish, follow track watch monitor observe,
measure profile benchmark, guess infer detect recognize, describe explain document,
summarize summary shorten abstract digest, fill pad, hide mask conceal, filter select where,
group cluster categorize classify, choose pick select draw, sort order arrange rank, mix shuffle randomize,
folder directory dir, file document, filename pathname path, parent ancestor, tree hierarchy nested,
picture image photo, email mail message, letter character char, url link uri address,
web internet online http page site website, string text str, word token term, number integer int numeric,
digit number numeral, float decimal real, list array sequence, item element entry member, dictionary mapping dict map,
key name, value content, argument parameter option, size length len, largest biggest maximum max greatest highest top,
smallest minimum min least lowest, average mean, middle median centre center, spread deviation variance,
frequent common often, sum total add, product multiply, divide quotient, remainder modulo, power exponent, root sqrt,
angle degree radian, distance far, count number amount many, compress zip pack archive shrink,
decompress unzip unpack expand extract inflate uncompress, encrypt encipher lock, decrypt decipher unlock,
hash digest checksum fingerprint, sign signature, password passphrase passcode, secret private secure,
token credential, login authenticate signin, wait sleep pause delay suspend, timeout deadline expire,
print show display output, pretty readable nice, computer machine host system platform server,
program executable command process application script, shell terminal console, error exception failure problem fault,
stack trace traceback, bug defect, warning caution, remember cache memoize, compare difference diff distinguish,
identical same equal, different distinct unique, similar close near alike fuzzy, duplicate repeated double,
download fetch retrieve, upload put send, uppercase upper capital, lowercase lower, whitespace space blank,
accent diacritic, line row, column field, table spreadsheet sheet, csv comma, begin start prefix first leading,
end suffix tail last trailing, permission mode access right, owner own, shortcut symlink symbolic link, quote escape,
regex pattern expression, wildcard glob pattern, match fit, occurrence match instance, user person account,
current now today present, date day, weekday day week, time clock, moment timestamp instant, duration elapsed interval,
parse analyse analyze read decode, encode serialize, decode deserialize, format layout style, identifier id uuid guid,
random arbitrary, repeat again iterate loop, reverse invert backwards, round nearest, ceiling up, floor down,
exist present, missing absent, empty blank, true boolean, function method routine callable, class type kind,
object instance, module package library, source code, comment note remark, version release, environment variable,
memory ram, processor cpu core, disk drive storage volume, network net, port socket, connection link session,
task job work, thread worker, parallel concurrent simultaneous, queue backlog, event occurrence,
log journal record history, database db sql, transaction commit, weather forecast temperature climate,
rain precipitation, price cost fee rate, money currency cash, pay payment charge, buy purchase order, sell sale, refund reimburse repay,
invoice bill, meeting appointment event calendar, song music audio sound, movie film video, place location position,
city town, country nation, map route directions, flight plane, car vehicle, restaurant food, phone telephone call,
customer client, employee staff worker, company business firm, news article, book title, stock share, colour color
"""


class Idea(NamedTuple):
    """A word of a question, and the stems that may stand for it with their weights."""

    word: str
    stems: Mapping[str, float]


class Document(NamedTuple):
    """The stems of a tool, by field."""

    name: Sequence[str]
    description: Sequence[str]
    tags: Sequence[str]
    parameters: Sequence[str]


def document_of(row: Row) -> Document:
    """The stems of a row."""
    parameters = " ".join(f"{name} {description}" for name, description in row.parameters)
    return Document(
        name=list(dict.fromkeys(_stems(f"{row.slug} {row.name} {row.display_name}"))),
        description=_stems(row.description),
        tags=_stems(" ".join(row.tags)),
        parameters=_stems(parameters),
    )


def _stems(text: str) -> list[str]:
    return [stem(word) for word in words_in_order(text[:MAX_FIELD])]


def read_question(question: str) -> list[Idea]:
    """The ideas of a question."""
    words = words_in_order(question[:MAX_LETTERS])
    ideas: list[Idea] = []
    telling: list[str] = []
    position = 0
    while position < len(words):
        meaning, length = _phrase(words, position)
        if meaning:
            ideas.append(Idea("", dict.fromkeys(meaning, 1.0)))
        elif words[position] not in stop_words():
            telling.append(words[position])
        position += length
    if not telling and not ideas:
        telling = words
    said = {stem(word): word for word in telling}
    return [*ideas, *(_idea(word, each, said) for each, word in said.items())][:MAX_IDEAS]


def _phrase(words: list[str], position: int) -> tuple[tuple[str, ...], int]:
    """The meaning of the phrase at this position, and its length."""
    for length in (5, 4, 3, 2):
        meaning = phrases().get(tuple(words[position : position + length]))
        if meaning:
            return meaning, length
    return (), 1


def _idea(word: str, its_stem: str, said: Container[str]) -> Idea:
    """A word and its synonyms, except those in the question itself."""
    others = {other: SYNONYM for other in synonyms().get(its_stem, ()) if other not in said}
    return Idea(word, others | {its_stem: 1.0})


def corrected(idea: Idea, near: Iterable[str]) -> Idea:
    """An idea whose word no tool has, with corrections."""
    return Idea(idea.word, {stem(other): CORRECTION for other in near} | dict(idea.stems))


class Relevance:
    """Scores tools for one question, given the number of tools and how many of them have each stem."""

    def __init__(self, ideas: Iterable[Idea], frequencies: Mapping[str, int], count: int) -> None:
        self.rarity = {each: math.log(1 + (count - rows + 0.5) / (rows + 0.5)) for each, rows in frequencies.items()}
        self.ideas = [{each: weight for each, weight in idea.stems.items() if each in self.rarity} for idea in ideas]
        self._wanted = {each for idea in self.ideas for each in idea}
        # A word that no tool has cannot be covered; it counts like an ordinary word.
        self._worth = [
            max((weight * self.rarity[each] for each, weight in idea.items()), default=math.log(1 + count) / 2)
            for idea in self.ideas
        ]

    def score(self, document: Document) -> float:
        """How well it answers; 0 if it does not."""
        strengths = _strengths(document, self._wanted)
        if not strengths:
            return 0.0
        total = covered = 0.0
        for idea, worth in zip(self.ideas, self._worth, strict=True):
            best = max(
                (weight * self.rarity[each] * strengths[each] for each, weight in idea.items() if each in strengths),
                default=0.0,
            )
            if best:
                total += best
                covered += worth
        return total * covered / sum(self._worth)


def _strengths(document: Document, wanted: set[str]) -> dict[str, float]:
    """The strength of each stem in a tool, from 0 to about 2."""
    amounts: defaultdict[str, float] = defaultdict(float)
    for stems, weight, length, usual in (
        (document.name, NAME, LENGTH_OF_NAME, USUAL_NAME),
        (document.description, DESCRIPTION, LENGTH_OF_DESCRIPTION, USUAL_DESCRIPTION),
        (document.tags, TAG, 0.0, 1),
        (document.parameters, PARAMETER, LENGTH_OF_PARAMETERS, USUAL_PARAMETERS),
    ):
        for each in wanted.intersection(stems):
            amounts[each] += weight * stems.count(each) / (1 - length + length * len(stems) / usual)
    return {each: amount * (SATURATION + 1) / (SATURATION + amount) for each, amount in amounts.items()}


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """The stem of a word: `translations`, `translated` and `translator` have that of `translate`.

    A short word, or one in another script, is its own stem.
    """
    if len(word) < 4 or not word.isascii() or not word.isalpha():  # noqa: PLR2004 - the rules know no shorter words
        return word
    if not _NO_PLURAL.fullmatch(word):
        word = _without(word, _PLURALS)
    shorter = _without(word, _TENSES)
    if shorter != word and _VOWEL.match(shorter):
        word = shorter[:-1] if _DOUBLED.fullmatch(shorter) else shorter
    word = _without(word, _ENDINGS)
    if len(word) > 3 and word.endswith("e"):  # noqa: PLR2004 - see above
        word = word[:-1]
    return f"{word[:-1]}i" if word.endswith("y") and len(word) > 2 else word  # noqa: PLR2004 - see above


def _without(word: str, endings: tuple[tuple[str, str, int], ...]) -> str:
    for ending, instead, rest in endings:
        if word.endswith(ending) and len(word) - len(ending) >= rest:
            return word[: -len(ending)] + instead
    return word


@lru_cache(maxsize=1)
def stop_words() -> frozenset[str]:
    """Words without meaning for a search."""
    return frozenset(STOP_WORDS.split())


@lru_cache(maxsize=1)
def synonyms() -> dict[str, frozenset[str]]:
    """The synonyms of each stem."""
    found: dict[str, set[str]] = {}
    for words in SYNONYMS.split(","):
        stems = {stem(word) for word in words.split()}
        for each in stems:
            found.setdefault(each, set()).update(stems - {each})
    return {each: frozenset(others) for each, others in found.items()}


@lru_cache(maxsize=1)
def phrases() -> dict[tuple[str, ...], tuple[str, ...]]:
    """The stems that each phrase means."""
    lines = (line.partition(" = ") for line in PHRASES.strip().splitlines())
    return {tuple(words.split()): tuple(stem(word) for word in meaning.split()) for words, _, meaning in lines}
