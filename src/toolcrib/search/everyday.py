"""Words of everyday questions: those that say nothing about a tool, and those that mean nearly the same."""

from __future__ import annotations

from functools import lru_cache

from toolcrib.search.stems import stem

STOP_WORDS = """
a about above after again all also am an and any are as at be been before being below between both but by can cannot
could did do does doing done each every few for from further had has have having he help her here him his how i if in
into is it its itself just let like lot may me might more most much must my need needs no nor not now of off on once
one only or other our out over own per please same she should so some something such tell than that the their them
then there these they thing things this those through to tool too under until up us use used using very want was way
we well were what when where which while who whom whose why will with without would you your
"""

# What several words mean together, where each of them would mislead.
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

# The words between two commas mean nearly the same when one speaks of tools.
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
rain precipitation, price cost fee rate, money currency cash, pay payment charge, buy purchase order, sell sale,
invoice bill, meeting appointment event calendar, song music audio sound, movie film video, place location position,
city town, country nation, map route directions, flight plane, car vehicle, restaurant food, phone telephone call,
customer client, employee staff worker, company business firm, news article, book title, stock share, colour color
"""


@lru_cache(maxsize=1)
def stop_words() -> frozenset[str]:
    """Words that say nothing about a tool."""
    return frozenset(STOP_WORDS.split())


@lru_cache(maxsize=1)
def synonyms() -> dict[str, frozenset[str]]:
    """For each stem those that mean nearly the same."""
    found: dict[str, set[str]] = {}
    for words in SYNONYMS.split(","):
        stems = {stem(word) for word in words.split()}
        for each in stems:
            found.setdefault(each, set()).update(stems - {each})
    return {each: frozenset(others) for each, others in found.items()}


@lru_cache(maxsize=1)
def phrases() -> dict[tuple[str, ...], tuple[str, ...]]:
    """For several words, one after the other, the stems of what they mean."""
    lines = (line.partition(" = ") for line in PHRASES.strip().splitlines())
    return {tuple(words.split()): tuple(stem(word) for word in meaning.split()) for words, _, meaning in lines}
