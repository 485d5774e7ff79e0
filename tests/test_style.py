"""The caps that keep the code readable, and the few rules that no linter has."""

import ast
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
PACKAGES = ("agent", "server", "train")
FILES = sorted(path for folder in (*PACKAGES, "tests") for path in (ROOT / folder).rglob("*.py"))


Faults = Iterator[str]
Rule = Callable[[Path, str, list[ast.AST]], Faults]
"""Of a file's path, text and nodes, its module first."""


def too_long(path: Path, text: str, nodes: list[ast.AST]) -> Faults:
    if (lines := text.count("\n")) > MAX_FILE_LINES:
        yield f"{path} has {lines} lines; split it by noun"
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > MAX_FUNCTION_LINES:
                yield f"{path}:{node.lineno} {node.name} has {length} lines"


def environment_reads(path: Path, text: str, nodes: list[ast.AST]) -> Faults:
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv"}:
            yield f"{path}:{node.lineno} reads the environment; only settings.py does"


def unsaid(path: Path, text: str, nodes: list[ast.AST]) -> Faults:
    module = nodes[0]
    assert isinstance(module, ast.Module)
    docstring = ast.get_docstring(module)
    if not docstring:
        if module.body:
            yield f"{path}: open the module with one to five lines: what it is, and what it is not"
    elif len(docstring.split("\n\n")[0].splitlines()) > 5:
        yield f"{path}: the docstring's opening is too long"


SPAWNS = ("agent/parallel/processes.py",)
"""The one module that starts processes of `multiprocessing`."""
UNPICKLES = ("agent/parallel/workers.py", "train/evaluation/shards.py")
"""Over pipes from processes that they started themselves; never from a file."""
BARE_STARTS = {"get_context", "set_start_method", "Pool", "Process"}
LOADERS = {"from_pretrained", "SentenceTransformer", "CrossEncoder"}


def unsafe_starts(path: Path, text: str, nodes: list[ast.AST]) -> Faults:
    """Pythons that would import from the current folder."""
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="multiprocessing"), attr=name)) if name in BARE_STARTS:
                yield f"{path}:{node.lineno} starts processes by itself; use agent.parallel.processes.spawning()"
            case ast.Call(func=ast.Name(id="ProcessPoolExecutor") | ast.Attribute(attr="ProcessPoolExecutor")) if (
                not any(word.arg == "mp_context" for word in node.keywords)
            ):
                yield f"{path}:{node.lineno} opens a pool; give it mp_context=agent.parallel.processes.spawning()"
            case ast.List(elts=elts) | ast.Tuple(elts=elts) | ast.Call(args=elts):
                for at, each in enumerate(elts):
                    following = elts[at + 1] if at + 1 < len(elts) else None
                    safe = isinstance(following, ast.Constant) and following.value == "-P"
                    if isinstance(each, ast.Attribute) and ast.unparse(each) == "sys.executable" and not safe:
                        yield f"{path}:{node.lineno} starts a Python without -P"
            case _:
                pass


def unsafe_loads(path: Path, text: str, nodes: list[ast.AST]) -> Faults:
    """Files that could run code when they are read, and models that could bring some."""
    for node in nodes:
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        words = {word.arg: ast.unparse(word.value) for word in node.keywords}
        spread = any(word.arg is None and "trust_remote_code" in ast.unparse(word.value) for word in node.keywords)
        last = name.rpartition(".")[2]
        if last in LOADERS and words.get("trust_remote_code") != "False" and not spread:
            yield f"{path}:{node.lineno} loads a model; say trust_remote_code=False"
        if last in LOADERS and "tokenizer" not in name.lower() and "'use_safetensors': True" not in _said(node):
            yield f"{path}:{node.lineno} loads weights; say use_safetensors=True"
        if name == "torch.load" and words.get("weights_only") != "True":
            yield f"{path}:{node.lineno} unpickles; say weights_only=True"
        if last == "load" and words.get("allow_pickle", "False") != "False":
            yield f"{path}:{node.lineno} unpickles arrays"
        if name in {"eval", "exec"} or name.split(".")[0] in {"shelve", "marshal", "dill", "joblib", "cloudpickle"}:
            yield f"{path}:{node.lineno} runs what it reads"
        if name in {"pickle.load", "pickle.loads", "pickle.Unpickler"} and not path.as_posix().endswith(UNPICKLES):
            yield f"{path}:{node.lineno} unpickles"


def _said(call: ast.Call) -> str:
    """The arguments of a call by name, those inside a dictionary included."""
    return ast.unparse(call).replace("use_safetensors=", "'use_safetensors': ")


OWN_FILES = ("agent/bench", "agent/world", "agent/sources/kg/build.py", "lab/benchmarks/load", "train")
"""What these read, Cairn itself has written or ships."""
TAKES_ADDRESSES_APART = ("agent/outbound/urls.py", "agent/outbound/address.py")


def bare_reads(path: Path, text: str, nodes: list[ast.AST]) -> Faults:
    """Files that may be a pipe without a writer, a device without an end, or terabytes long."""
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(attr="read_text" | "read_bytes")):
                bare = True
            case ast.Call(func=ast.Attribute(attr="open"), args=[ast.Constant(value=str(mode))]):
                bare = mode.startswith("r")
            case ast.Call(func=ast.Attribute(attr="open"), args=[], keywords=[ast.keyword(arg="encoding")]):
                bare = True
            case _:
                bare = False
        if bare and isinstance(node, ast.expr):
            yield f"{path}:{node.lineno} reads a file without bounds; agent.foreign_files has what is safe"


def bare_addresses(path: Path, text: str, nodes: list[ast.AST]) -> Faults:
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and {"urlsplit", "urlparse"} & {alias.name for alias in node.names}:
            yield f"{path}:{node.lineno} takes addresses apart; agent.urls does so without raising"


def raises_in_a_group(path: Path, text: str, nodes: list[ast.AST]) -> Faults:
    """Before Python 3.11.4 such an error comes in a group of its own."""
    handlers = [handler for node in nodes if isinstance(node, ast.TryStar) for handler in node.handlers]
    for node in (node for handler in handlers for node in ast.walk(handler) if isinstance(node, ast.Raise)):
        yield f"{path}:{node.lineno} raises inside except*; agent.errors.first_of does without"


RULES = (
    too_long,
    environment_reads,
    unsaid,
    unsafe_starts,
    unsafe_loads,
    bare_reads,
    bare_addresses,
    raises_in_a_group,
)
OF_TESTS = (too_long, environment_reads)


def faults(path: Path, rules: tuple[Rule, ...] = RULES) -> dict[str, list[str]]:
    text = path.read_text(encoding="utf-8")
    module = ast.parse(text)
    nodes = list(ast.walk(module))
    return {rule.__name__: list(rule(path, text, nodes)) for rule in rules}


@cache
def every_file() -> dict[Path, dict[str, list[str]]]:
    return {path: faults(path, OF_TESTS if name_of(path).startswith("tests") else RULES) for path in FILES}


def test_files_and_functions_stay_short():
    assert not [said for found in every_file().values() for said in found["too_long"]]


def test_a_module_with_code_says_what_it_is():
    assert of_the_product("unsaid") == []


def test_only_the_settings_read_the_environment():
    # These set the environment of a process that they fork.
    forks = {ROOT / "tests/attacks/forked.py", ROOT / "tests/train/rl/forked.py"}
    others = [found for path, found in every_file().items() if path.name != "settings.py" and path not in forks]
    assert not [said for found in others for said in found["environment_reads"]]


def of_the_product(rule: str, *, but: tuple[str, ...] = ()) -> list[str]:
    """What a rule finds in the packages, without the files `but`."""
    ours = {path: found for path, found in every_file().items() if path.relative_to(ROOT).parts[0] in PACKAGES}
    return [said for path, found in ours.items() if not path.as_posix().endswith(but or ("?",)) for said in found[rule]]


def test_every_python_is_started_without_the_current_folder():
    assert of_the_product("unsafe_starts", but=SPAWNS) == []


def test_nothing_that_is_read_runs():
    assert of_the_product("unsafe_loads") == []


def test_files_that_others_may_have_made_are_read_within_bounds():
    ours = [found for path, found in every_file().items() if not name_of(path).startswith((*OWN_FILES, "tests"))]
    assert [said for found in ours for said in found["bare_reads"]] == []


def test_no_error_is_raised_where_some_pythons_wrap_it():
    assert of_the_product("raises_in_a_group") == []


def test_addresses_are_taken_apart_in_one_place():
    ours = [
        found
        for path, found in every_file().items()
        if name_of(path).startswith(("agent", "train")) and name_of(path) not in TAKES_ADDRESSES_APART
    ]
    assert [said for found in ours for said in found["bare_addresses"]] == []


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("path.read_text()", "bare_reads"),
        ("(folder / name).read_bytes()", "bare_reads"),
        ('path.open("rb")', "bare_reads"),
        ('path.open(encoding="utf-8")', "bare_reads"),
        ('path.open("w", encoding="utf-8")', ""),
        ("policy.open(protocol, question)", ""),
        ("from urllib.parse import quote, urlsplit", "bare_addresses"),
        ("try:\n    f()\nexcept* OSError:\n    raise ValueError", "raises_in_a_group"),
    ],
)
def test_the_rules_of_reading_see_what_breaks_them(tmp_path: Path, line: str, rule: str):
    (tmp_path / "bad.py").write_text(f'"""A."""\n{line}\n', encoding="utf-8")
    assert {name for name, said in faults(tmp_path / "bad.py").items() if said} == {rule} - {""}


@pytest.mark.parametrize(
    "line",
    [
        "multiprocessing.get_context('spawn')",
        "ProcessPoolExecutor(3)",
        "subprocess.run([sys.executable, '-m', 'agent.cli'])",
        "create_subprocess_exec(sys.executable, '-c', code)",
        "AutoModel.from_pretrained(folder)",
        "AutoModel.from_pretrained(folder, trust_remote_code=True)",
        "AutoModel.from_pretrained(folder, trust_remote_code=False)",
        "sentence_transformers.CrossEncoder(name, trust_remote_code=False)",
        "sentence_transformers.CrossEncoder(name)",
        "torch.load(path)",
        "np.load(path, allow_pickle=True)",
        "pickle.load(file)",
        "eval(text)",
        "shelve.open(path)",
    ],
)
def test_the_rules_of_safety_see_what_breaks_them(tmp_path: Path, line: str):
    held = tmp_path / "bad.py"
    held.write_text(f"{line}\n", encoding="utf-8")
    found = faults(held)
    assert [*found["unsafe_starts"], *found["unsafe_loads"]]


def test_the_caps_see_what_is_too_long(tmp_path: Path):
    bad = tmp_path / "bad.py"
    bad.write_text("import os\ndef f():\n" + "    pass\n" * MAX_FILE_LINES + "    os.environ\n", encoding="utf-8")
    assert {rule: len(said) for rule, said in faults(bad).items()} == {
        "too_long": 2,
        "environment_reads": 1,
        "unsaid": 1,
        "unsafe_starts": 0,
        "unsafe_loads": 0,
        "bare_reads": 0,
        "bare_addresses": 0,
        "raises_in_a_group": 0,
    }
