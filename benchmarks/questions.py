"""Questions as people and agents ask them, over the functions of the standard library, and how many find their answer.

The catalogue is read from the Python that runs; the questions avoid the words of the functions where a person would not use
them. Weights were tuned on every other question; the rest measure, and were looked at when an idea was kept or dropped, so a
catalogue that nobody here has seen may do worse.
"""

from __future__ import annotations

import importlib
import inspect
import sys
import warnings
from typing import TYPE_CHECKING

from toolcrib.infra.search import Hit, Row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MODULES = """
ast asyncio atexit base64 binascii bisect builtins bz2 calendar cmath codecs colorsys compileall contextlib copy csv dataclasses difflib dis
email.utils filecmp fileinput fnmatch functools gc getpass gettext glob gzip hashlib heapq hmac html http.client imaplib importlib
importlib.metadata importlib.util inspect io ipaddress itertools json keyword linecache locale logging lzma math mimetypes
netrc operator os os.path pickle pickletools pkgutil platform plistlib posixpath pprint py_compile pydoc quopri random re resource runpy secrets select
shelve shlex shutil signal site smtplib socket sqlite3 ssl stat statistics string struct subprocess sys sysconfig
tarfile tempfile textwrap threading time timeit tokenize traceback tracemalloc types typing unicodedata unittest urllib.parse
urllib.request uuid venv warnings wave weakref webbrowser wsgiref.util xml.dom.minidom xml.etree.ElementTree
xml.sax.saxutils zipapp zipfile zlib zoneinfo
"""
CLASSES = """
builtins.str builtins.bytes builtins.dict builtins.list builtins.set builtins.int builtins.float pathlib.Path datetime.datetime
datetime.date datetime.timedelta collections.Counter collections.deque collections.OrderedDict zipfile.ZipFile tarfile.TarFile smtplib.SMTP
imaplib.IMAP4 ftplib.FTP poplib.POP3 sqlite3.Connection socket.socket threading.Thread asyncio.Task email.message.EmailMessage
configparser.ConfigParser csv.DictWriter ipaddress.IPv4Network decimal.Decimal fractions.Fraction random.Random mailbox.Mailbox
argparse.ArgumentParser logging.Logger concurrent.futures.Executor http.cookiejar.CookieJar sched.scheduler string.Template
"""

# The question, and the functions that answer it.
QUESTIONS: tuple[tuple[str, str], ...] = (
    ("delete a folder and everything in it", "shutil.rmtree"),
    ("copy a whole directory with all its subfolders", "shutil.copytree"),
    ("how much free space is left on the disk", "shutil.disk_usage"),
    ("where is the program git installed on this machine", "shutil.which"),
    ("relocate a file to another folder", "shutil.move os.rename os.replace Path.rename Path.replace"),
    ("pack a directory into a zip archive", "shutil.make_archive ZipFile.write zipapp.create_archive"),
    ("unzip an archive into a folder", "shutil.unpack_archive ZipFile.extractall"),
    ("change who owns a file", "shutil.chown os.chown os.lchown os.fchown"),
    ("copy a file and keep its timestamps", "shutil.copy2 shutil.copystat"),
    ("erase a single file", "os.remove os.unlink Path.unlink"),
    ("what files are in this directory", "os.listdir os.scandir Path.iterdir"),
    ("make a new folder including missing parents", "os.makedirs Path.mkdir"),
    ("go through a directory tree recursively", "os.walk os.fwalk Path.walk"),
    ("which directory am I working in", "os.getcwd os.getcwdb Path.cwd"),
    ("switch to a different working directory", "os.chdir os.fchdir contextlib.chdir"),
    ("how many processors does this computer have", "os.cpu_count"),
    ("read an environment variable", "os.getenv os.getenvb"),
    ("make a shortcut that points to another file", "os.symlink os.link Path.symlink_to Path.hardlink_to"),
    ("find out where a shortcut points to", "os.readlink Path.readlink os.path.realpath Path.resolve"),
    ("make a file read-only by changing permissions", "os.chmod os.fchmod os.lchmod Path.chmod Path.lchmod"),
    ("kill a process by its number", "os.kill os.killpg signal.pidfd_send_signal"),
    ("who is logged in at the terminal", "os.getlogin getpass.getuser"),
    ("generate secure random bytes", "os.urandom secrets.token_bytes random.randbytes Random.randbytes os.getrandom"),
    ("does this path exist", "os.path.exists os.path.lexists Path.exists"),
    ("size of a file in bytes", "os.path.getsize"),
    ("when was the file last changed", "os.path.getmtime"),
    ("get the extension of a file name", "os.path.splitext"),
    ("the name of the file without the directories before it", "os.path.basename"),
    ("put together folder and file name into one path", "os.path.join Path.joinpath"),
    ("turn a relative path into an absolute one", "os.path.abspath Path.absolute Path.resolve os.path.realpath"),
    ("replace the tilde with my home directory", "os.path.expanduser Path.expanduser"),
    ("longest path that several files share", "os.path.commonpath os.path.commonprefix"),
    ("is it a folder or not", "os.path.isdir Path.is_dir"),
    ("find all files ending in .txt", "glob.glob glob.iglob Path.glob Path.rglob"),
    ("does a filename fit a wildcard such as *.py", "fnmatch.fnmatch fnmatch.fnmatchcase Path.match Path.full_match"),
    ("create a temporary directory", "tempfile.mkdtemp"),
    ("are two files identical", "filecmp.cmp os.path.samefile Path.samefile"),
    ("turn a Python object into JSON text", "json.dumps"),
    ("parse a JSON string", "json.loads"),
    ("read JSON from an open file", "json.load"),
    ("save an object to a file in binary form so that it can be restored later", "pickle.dump"),
    (
        "encode bytes as base64",
        "base64.b64encode base64.standard_b64encode base64.encodebytes base64.urlsafe_b64encode binascii.b2a_base64",
    ),
    (
        "decode base64 text",
        "base64.b64decode base64.standard_b64decode base64.decodebytes base64.urlsafe_b64decode binascii.a2b_base64",
    ),
    ("convert bytes to hexadecimal digits", "binascii.hexlify binascii.b2a_hex bytes.hex base64.b16encode"),
    ("checksum to detect transmission errors", "zlib.crc32 binascii.crc32 zlib.adler32 binascii.crc_hqx"),
    ("compress data", "zlib.compress gzip.compress bz2.compress lzma.compress"),
    ("expand data that was compressed with gzip", "gzip.decompress"),
    ("derive a key from a password", "hashlib.pbkdf2_hmac hashlib.scrypt"),
    ("sha256 hash of some bytes", "hashlib.sha256"),
    ("compare two secrets without leaking timing", "hmac.compare_digest secrets.compare_digest"),
    ("signature of a message with a shared secret", "hmac.new hmac.digest"),
    ("make a password reset token for a link", "secrets.token_urlsafe secrets.token_hex"),
    ("pick a random element from a list", "random.choice secrets.choice Random.choice"),
    ("mix up the order of the items", "random.shuffle Random.shuffle"),
    ("roll a die: whole number between 1 and 6", "random.randint Random.randint random.randrange Random.randrange"),
    ("draw several different winners from the participants", "random.sample Random.sample"),
    ("random number with a normal distribution", "random.gauss random.normalvariate Random.gauss Random.normalvariate"),
    ("get the same random numbers every time", "random.seed Random.seed"),
    ("average of a list of numbers", "statistics.mean statistics.fmean"),
    ("middle value of the data", "statistics.median"),
    ("how spread out is the sample", "statistics.stdev statistics.variance statistics.pstdev statistics.pvariance"),
    ("most frequent value", "statistics.mode statistics.multimode Counter.most_common"),
    ("fit a straight line through points", "statistics.linear_regression"),
    ("how strongly are two variables related", "statistics.correlation statistics.covariance"),
    ("divide data into quartiles", "statistics.quantiles"),
    ("square root", "math.sqrt cmath.sqrt math.isqrt Decimal.sqrt"),
    ("greatest common divisor", "math.gcd"),
    ("convert an angle from degrees to radians", "math.radians"),
    ("how many ways to choose k out of n", "math.comb"),
    ("product of all the numbers in a list", "math.prod"),
    ("round up to the next whole number", "math.ceil"),
    ("natural logarithm", "math.log cmath.log Decimal.ln"),
    ("distance between two points", "math.dist math.hypot"),
    ("add up numbers without losing precision", "math.fsum"),
    ("is this value not a number", "math.isnan cmath.isnan Decimal.is_nan"),
    ("shorten a text so that it fits into a given width", "textwrap.shorten"),
    ("break a long paragraph into lines", "textwrap.wrap textwrap.fill"),
    ("remove common leading whitespace from every line", "textwrap.dedent inspect.cleandoc"),
    ("put spaces before each line", "textwrap.indent"),
    ("escape special characters for a web page", "html.escape saxutils.escape"),
    ("turn &amp; back into &", "html.unescape saxutils.unescape"),
    ("replace all matches of a regular expression", "re.sub re.subn"),
    ("split text at a pattern", "re.split"),
    ("find every occurrence of a pattern in the text", "re.findall re.finditer"),
    ("quote special characters in a regex", "re.escape"),
    ("make everything upper case", "str.upper bytes.upper"),
    ("strip whitespace from both ends", "str.strip bytes.strip"),
    ("does the text start with this", "str.startswith bytes.startswith"),
    ("how often does a substring occur", "str.count bytes.count bytes.find"),
    ("glue a list of strings together with commas", "str.join bytes.join"),
    ("pad a number with leading zeros", "str.zfill bytes.zfill"),
    ("consists only of digits", "str.isdigit str.isdecimal str.isnumeric bytes.isdigit"),
    ("text to bytes", "str.encode codecs.encode"),
    ("what is the official name of this unicode character", "unicodedata.name"),
    ("remove accents by normalising unicode", "unicodedata.normalize"),
    ("similar words to a misspelled one", "difflib.get_close_matches"),
    ("show the differences between two texts", "difflib.unified_diff difflib.context_diff difflib.ndiff"),
    ("parse a web address into its parts", "parse.urlparse parse.urlsplit"),
    ("percent-encode text for a url", "parse.quote parse.quote_plus parse.quote_from_bytes"),
    ("build a query string from a dictionary", "parse.urlencode"),
    ("resolve a relative link against a base url", "parse.urljoin"),
    ("read the parameters of a query string", "parse.parse_qs parse.parse_qsl"),
    ("download a web page", "request.urlopen request.urlretrieve"),
    ("show a page in the browser", "webbrowser.open webbrowser.open_new webbrowser.open_new_tab"),
    ("ip address of a host name", "socket.gethostbyname socket.getaddrinfo socket.gethostbyname_ex"),
    ("name of this computer on the network", "socket.gethostname platform.node socket.getfqdn"),
    ("connect to a server over tcp", "socket.create_connection socket.connect asyncio.open_connection"),
    ("wait until a socket has data", "select.select select.poll select.epoll"),
    ("list all addresses in a subnet", "IPv4Network.hosts IPv4Network.subnets"),
    ("send an email", "SMTP.sendmail SMTP.send_message"),
    ("look for messages in the mailbox", "IMAP4.search"),
    ("log in to the mail server", "SMTP.login IMAP4.login POP3.user POP3.pass_"),
    ("guess the type of a file from its name", "mimetypes.guess_type mimetypes.guess_file_type"),
    ("upload a file to an ftp server", "FTP.storbinary FTP.storlines"),
    ("pause for some seconds", "time.sleep asyncio.sleep"),
    ("current time in seconds", "time.time time.time_ns"),
    (
        "measure how long something takes precisely",
        "time.perf_counter time.perf_counter_ns timeit.timeit timeit.repeat",
    ),
    ("parse a date from a text in a given format", "time.strptime datetime.strptime"),
    ("write a date as text in a given format", "time.strftime datetime.strftime date.strftime"),
    ("what day is it today", "date.today datetime.today datetime.now"),
    ("day of the week of a date", "date.weekday date.isoweekday calendar.weekday datetime.weekday datetime.isoweekday"),
    ("is it a leap year", "calendar.isleap"),
    ("number of days in a month", "calendar.monthrange"),
    ("print the calendar of a month", "calendar.month calendar.prmonth calendar.prcal calendar.calendar"),
    ("which time zones are there", "zoneinfo.available_timezones"),
    (
        "start a program and get its output",
        "subprocess.check_output subprocess.run subprocess.getoutput subprocess.getstatusoutput",
    ),
    (
        "run a shell command",
        "os.system subprocess.run subprocess.call subprocess.getoutput asyncio.create_subprocess_shell subprocess.getstatusoutput os.popen",
    ),
    ("split a command line into words like the shell does", "shlex.split"),
    ("quote an argument for the shell", "shlex.quote"),
    ("ask the user for a password without showing it", "getpass.getpass"),
    ("which operating system is this", "platform.system platform.platform os.uname platform.uname"),
    ("version of the interpreter", "platform.python_version platform.python_version_tuple"),
    ("how much memory does an object take", "sys.getsizeof"),
    ("stop the program with an exit code", "sys.exit os._exit builtins.exit builtins.quit"),
    ("deepest allowed recursion", "sys.getrecursionlimit sys.setrecursionlimit"),
    ("free unused objects now", "gc.collect"),
    ("call a function when the program ends", "atexit.register"),
    ("remember results of earlier calls", "functools.lru_cache functools.cache functools.cached_property"),
    ("fix some arguments of a function in advance", "functools.partial functools.partialmethod"),
    ("combine all items into one value by applying a function repeatedly", "functools.reduce itertools.accumulate"),
    ("all orders in which items can be arranged", "itertools.permutations"),
    ("the three smallest items", "heapq.nsmallest"),
    (
        "where would I insert a value in a sorted list",
        "bisect.bisect bisect.bisect_left bisect.bisect_right bisect.insort",
    ),
    ("duplicate an object with everything inside it", "copy.deepcopy"),
    ("show nested data in a readable way", "pprint.pprint pprint.pformat pprint.pp"),
    ("source code of a function", "inspect.getsource inspect.getsourcelines"),
    ("what parameters does a function take", "inspect.signature inspect.getfullargspec"),
    ("load a module by its name", "importlib.import_module builtins.__import__"),
    ("version number of an installed package", "metadata.version"),
    (
        "print the stack of the last error",
        "traceback.print_exc traceback.format_exc traceback.print_last traceback.print_exception",
    ),
    ("run a coroutine from ordinary code", "asyncio.run asyncio.run_coroutine_threadsafe"),
    ("wait for several tasks at the same time", "asyncio.gather asyncio.wait"),
    ("give up if it takes too long", "asyncio.wait_for asyncio.timeout asyncio.timeout_at"),
    ("do blocking work in a thread without stopping the loop", "asyncio.to_thread"),
    ("open a database file", "sqlite3.connect dbm.open shelve.open"),
    ("undo the changes of a transaction", "Connection.rollback"),
    ("read a spreadsheet exported as comma-separated values", "csv.reader"),
    ("how many spaces make up a tab when tabs are replaced", "str.expandtabs bytes.expandtabs"),
    ("parse xml text", "ElementTree.fromstring minidom.parseString ElementTree.XML"),
    ("unique identifier for a record", "uuid.uuid4 uuid.uuid1 uuid.uuid7 uuid.uuid5 uuid.uuid3"),
    ("name of the weekday or month in my language", "locale.nl_langinfo"),
    ("hide a warning", "warnings.filterwarnings warnings.simplefilter"),
    ("sort a list from small to large", "builtins.sorted list.sort"),
    ("largest of several values", "builtins.max"),
    ("absolute value", "builtins.abs math.fabs operator.abs"),
    ("put an item at the end of a list", "list.append deque.append"),
    ("look up a key and get a default if it is missing", "dict.get dict.setdefault"),
    ("what two sets have in common", "set.intersection"),
    ("is a word reserved by the language", "keyword.iskeyword keyword.issoftkeyword"),
    ("evaluate a literal safely from text", "ast.literal_eval"),
    ("set the level and format of log output", "logging.basicConfig"),
)


def catalogue() -> list[Row]:
    """Every documented function of the modules and classes, as a tool would have it."""
    rows: dict[int, Row] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in MODULES.split():
            holder = importlib.import_module(module)
            for name, function in _functions(dict(vars(holder))):
                if (
                    getattr(function, "__module__", module) not in (module, None)
                    and function.__module__ in MODULES.split()
                ):
                    continue
                rows.setdefault(id(function), _row(module.rpartition(".")[2], module, name, function))
        for path in CLASSES.split():
            module, _, name = path.rpartition(".")
            holder = getattr(importlib.import_module(module), name)
            for method, function in _functions({name: getattr(holder, name) for name in dir(holder)}):
                rows.setdefault(id(function), _row(name, path, method, function))
    return list({row.id: row for row in rows.values()}.values())


def _functions(members: dict[str, object]) -> Iterator[tuple[str, Callable[..., object]]]:
    for name, member in sorted(members.items()):
        if not name.startswith("_") and callable(member) and _is_wanted(member):
            yield name, member


def _is_wanted(member: object) -> bool:
    """Functions with a docstring, and the classes that are used like functions."""
    if inspect.isclass(member) and member.__module__ not in ("itertools", "functools"):
        return False
    return bool(inspect.getdoc(member))


def _row(holder: str, path: str, name: str, function: Callable[..., object]) -> Row:
    try:
        parameters = tuple(
            (parameter, "") for parameter in inspect.signature(function).parameters if parameter not in ("self", "cls")
        )
    except (ValueError, TypeError):
        parameters = ()
    shown = f"os.path.{name}" if holder in ("path", "posixpath") else f"{holder}.{name}"
    return Row(
        id=shown,
        bundle=path,
        slug=name.replace("_", "-"),
        version="1",
        name=name,
        description=_first_paragraph(inspect.getdoc(function) or "", name),
        parameters=parameters,
        modified_at="2026-01-01T00:00:00.000Z",
        key=shown,
    )


def _first_paragraph(text: str, name: str) -> str:
    """The first paragraph that is more than the signature."""
    lines = text.splitlines()
    while lines and (
        not lines[0].strip() or "->" in lines[0] or lines[0].startswith((f"{name}(", f"S.{name}(", f"D.{name}("))
    ):
        del lines[0]
    return " ".join("\n".join(lines).partition("\n\n")[0].split())


def rank(hits: list[Hit], answers: str) -> int:
    """The place of the first answer among the hits, counted from 1; 0 if there is none."""
    wanted = set(answers.split())
    return next((place for place, hit in enumerate(hits, 1) if hit.id in wanted), 0)


def judge(ask: Callable[[str], list[Hit]], questions: tuple[tuple[str, str], ...]) -> dict[str, float]:
    """How many questions find an answer among the first 1, 5 and 10 hits, and the mean of 1 over its place."""
    ranks = [rank(ask(question), answers) for question, answers in questions]
    count = len(ranks)
    found = {f"recall@{depth}": sum(1 for place in ranks if 0 < place <= depth) / count for depth in (1, 5, 10)}
    return found | {"mrr": sum(1 / place for place in ranks if place) / count}


TUNED = QUESTIONS[0::2]
HELD_OUT = QUESTIONS[1::2]


def main() -> None:
    """Show the figures of both halves, and every question whose answer is not among the first ten."""
    from toolcrib.infra.search.index import Index

    index = Index(None)
    index.put(catalogue())
    for name, questions in (("tuned", TUNED), ("held out", HELD_OUT)):
        print(
            name,
            {key: round(value, 3) for key, value in judge(lambda text: index.ask(text, limit=10), questions).items()},
        )
    for question, answers in TUNED if "tuned" in sys.argv else QUESTIONS if "all" in sys.argv else ():
        hits = index.ask(question, limit=10)
        if rank(hits, answers) != 1:
            print(f"{rank(hits, answers):>3}  {question}  ->  {answers}\n     {' '.join(hit.id for hit in hits[:6])}")


if __name__ == "__main__":
    main()
