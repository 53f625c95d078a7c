"""Requests are parsed by the table of options; unknown options and those without effect are refused."""

import hashlib
from pathlib import Path

import pytest
from paths import TESTS
from thinnets import thin_model

from buildtool import options as table
from buildtool import zoo
from buildtool.api import handle
from buildtool.api.requests import EVERY_KIND, KINDS, options_of, parse, type_of
from buildtool.base.errors import BuildtoolError, ModelError, UsageError
from buildtool.base.modes import Strategy
from buildtool.base.session import Session
from buildtool.graph.tflite.writer import write_model
from buildtool.options import NESTED, OPTIONS, Group
from buildtool.options.table import DATA
from buildtool.split.settings import SplitSettings, read_settings
from buildtool.zoo.drawn import NetBuilder

NET = "ds_cnn"
LIBRARY = str(TESTS / "support/cmsis_nn")

# Values of options that are not their defaults, and that do not follow from the table.
OTHERS: dict[str, object] = {
    **{"ram": "64K", "max_f": 1.5, "max_cost": 1e9, "max_ms": 1000.0, "max_flash": "1M", "hand_off": 4},
    **{"segments": "0-6x5", "size": "32x48", "toolchain": "gcc", "image_version": "1.2.3", "wire": "serial"},
    **{"tool": "pyocd", "port": 4000, "cmsis_nn": LIBRARY, "weights_in": "tile1", "arena_in": "ram"},
    "kernels_in": "sram2",
    **{"normalise": "signed", "scores": "Identity", "name": "other", "plugin": "cortex_m", "flash": "1M"},
    **{"board": "host", "boards": ["host"], "model": "resnet8", "network": "resnet18", "max_drop": 1.5},
    **{"factors": "3,5", "width": 0.25, "rate": 0.05, "fine_rate": 0.01, "weight_decay": 0.001},
    **{"outputs": "pool", "period": "20ms", "warm_up": 0.2, "shift": 0.0, "held_out": 0.2, "capacity": "4K"},
}


def value_of(option):
    """A value of an option that is not its default."""
    if option.name in OTHERS:
        return OTHERS[option.name]
    if option.flag or option.number:
        return True if option.flag else 7
    if option.values:
        other = next(value for value in reversed(option.values) if value != option.default)
        return [other] if option.many else other
    assert option.suffixes is not None
    return f"/data/other{option.suffixes[0]}"


VALUES = {option.name: value_of(option) for option in OPTIONS}
RUN = ("validate", "profile")
LINKED = (*RUN, "debug", "flash")  # kinds that may name the firmware image of a build
NEEDED = {"board": "cortex-m4", "model": NET, "elf": "/data/net.elf", "file": "/data/problem.csv"}
NEEDED |= {"plugin": "host", "network": "vgg16", "train_data": "/data/set.npz"}
BESIDE = {"segments": {"strategy": "xcore-strips"}, "elf": {"plan": "/data/net.plan"}}
BESIDE["image_version"] = {"sign": "/data/key.pem"}
BESIDE["plan"] = {"elf": "/data/net.elf"}
BESIDE |= {"flashed": {"on": "board"}, "tool": {"on": "board"}}
BESIDE |= {name: {"data": "/data/a.npz"} for name in DATA if name != "data"}


def _last(option):
    """The last kind that takes an option."""
    return [kind for kind in EVERY_KIND if option.name in type_of(kind).takes][-1]


def beside(kind, option):
    """The other options that an option needs in a request of a kind."""
    if kind == "split":
        return {}
    if kind == "quantize" and option.name in ("seed", "sizes_only"):
        return {"limit": 5} if option.name == "seed" else {"data": None}
    runs = kind in LINKED or option.name not in ("elf", "plan")
    needed = BESIDE.get(option.name, {}) if runs else {}
    return {name: value for name, value in needed.items() if name != "on" or kind in RUN}


def parsed(asked):
    """The parsed request of the service, or the settings of a split."""
    return read_settings(asked) if asked.get("kind") == "split" else parse(asked)


def request(kind, *given, **values):
    """A request of a kind with all that it needs, and with values of options."""
    made: dict[str, object] = {"kind": kind}
    for name, value in NEEDED.items():
        needed = name in type_of(kind).takes and not (name == "elf" and kind in LINKED)
        if needed and not (name == "model" and kind == "zoo"):
            made[name] = value
    if kind == "quantize":
        made["data"] = "/data/a.npz"
    for option in given:
        values = {**beside(kind, option), option.name: VALUES[option.name], **values}
        if option.group is Group.COUNTING and "model" in made:
            made["model"] = "/data/net.cfg"
    for name, value in values.items():
        place = made.setdefault("options", {}) if table.BY_NAME[name].group in NESTED else made
        place[name] = value
    return made


def test_every_option_is_one_of_a_kind_of_request_and_every_planning_option_is_tried():
    assert {name for kind in EVERY_KIND for name in type_of(kind).takes} == VALUES.keys()
    assert EFFECTS.keys() == {option.name for option in options_of("plan", Group.PLANNING)}


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_every_option_changes_the_request_or_is_refused(kind):
    result = parsed(request(kind))
    assert isinstance(result, SplitSettings) if kind == "split" else result.kind == kind
    for option in OPTIONS:
        values = request(kind, option)
        if option.name in type_of(kind).takes:
            needed = {n: value for n, value in beside(kind, option).items() if n not in ("elf", "plan")}
            plain = request(kind, **needed)
            if option.name == "sizes_only":  # instead of a data set
                assert parsed(values) != parsed(request(kind))
                continue
            if option.group is Group.COUNTING:
                plain["model"] = "/data/net.cfg"
            assert parsed(values) != parsed(plain), option.name
            continue
        with pytest.raises(UsageError) as caught:
            parsed(values)
        assert caught.value.option in (option.name, *beside(kind, option))


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_an_unknown_key_is_named_and_the_right_one_suggested(kind):
    names = [one.name for one in options_of(kind) if one.group not in NESTED and len(one.name) > 3]
    for name in [*names, *(["options"] if options_of(kind, *NESTED) else [])]:
        wrong = name[0] + name
        words = f"unknown key '{wrong}' in a request of kind '{kind}'"
        with pytest.raises(UsageError, match=words) as caught:
            parsed({**request(kind), wrong: {}})
        assert caught.value.hint == f"did you mean '{name}'?"


def test_an_unknown_option_and_an_unknown_kind_are_named():
    with pytest.raises(UsageError, match="unknown key 'rma'") as caught:
        parse({**request("plan"), "options": {"rma": 4}})
    assert caught.value.hint == "did you mean 'ram'?"
    with pytest.raises(UsageError, match="unknown kind of request 'pln'") as caught:
        parse({"kind": "pln"})
    assert caught.value.hint == "did you mean 'plan'?"
    for nothing in ({}, {"kind": None}, {"kind": ["plan"]}):
        with pytest.raises(UsageError, match="unknown kind"):
            parse(nothing)
    # and an option in the wrong place is told where it belongs
    with pytest.raises(UsageError, match="'ram' belongs inside 'options'"):
        parse({**request("plan"), "ram": 4096})
    with pytest.raises(UsageError, match="'board' belongs beside 'options'"):
        parse({**request("plan"), "options": {"board": "host"}})


def test_a_value_of_a_wrong_type_is_refused_by_name():
    for option in OPTIONS:
        for wrong in (object(), 1.5j, [[]], {"path": 3}, b"bytes", *(["yes"] if option.flag else [])):
            with pytest.raises(UsageError) as caught:
                parsed(request(_last(option), option, **{option.name: wrong}))
            assert caught.value.option == option.name


def test_a_value_of_any_size_is_refused_in_a_short_message():
    # Python converts no integer of more than 4,300 digits from or to text.
    sizes = (10**5000, -(10**5000), "9" * 5000, "x" * 5000, ["y" * 5000], float("inf"), float("nan"))
    for option in OPTIONS:
        for wrong in sizes:
            try:
                parsed(request(_last(option), option, **{option.name: wrong}))
            except UsageError as error:
                assert error.option == option.name or error.path
                assert len(error.message()) < 6000


def test_what_a_request_cannot_do_without_is_named():
    for kind in KINDS:
        whole = request(kind)
        for name in whole.keys() - {"kind"}:
            if (kind, name) in (("describe", "model"), ("ops", "model"), ("quantize", "board")):
                continue
            with pytest.raises(UsageError, match="needs") as caught:
                parse({key: value for key, value in whole.items() if key != name})
            assert caught.value.option == name


# ---- strategies --------------------------------------------------------------------------------------


def test_every_option_is_refused_with_a_strategy_that_does_not_heed_it():
    for option in options_of("plan", Group.PLANNING):
        for strategy in set(Strategy) - set(option.strategies):
            options = {"strategy": strategy, option.name: VALUES[option.name]}
            with pytest.raises(UsageError, match=f"no effect with strategy {strategy}") as caught:
                parse({**request("plan"), "options": options})
            assert caught.value.option == option.name
    limited = {option.name for option in OPTIONS if len(option.strategies) < len(Strategy)}
    assert limited == {"max_f", "segments", "hand_off"}


@pytest.mark.slow
def test_an_objective_is_refused_where_a_strategy_makes_one_plan():
    options = {"strategy": "xcore-strips", "objective": "ram"}
    with pytest.raises(UsageError, match="makes one plan") as caught:
        handle({"kind": "plan", "model": NET, "board": "host", "options": options})
    assert caught.value.option == "objective"
    for heeded in ({**options, "order": "best"}, {**options, "strategy": "best"}):
        handle({"kind": "plan", "model": NET, "board": "host", "options": heeded})
    # here the objective decides how many buffers the weights get
    handle({"kind": "plan", "model": NET, "board": "xcore", "options": {**options, "strategy": "layerwise"}})


# ---- what options do to answers ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def branches(tmp_path_factory):
    """A file whose operators need less memory in another order."""
    net = NetBuilder(5)
    x = net.input((1, 12, 12, 8))
    wide = [net.conv(x, 48, kernel=(3, 3), same=True) for _ in range(3)]
    flat = [net.flatten(w) for w in wide]
    joined = net.concat([net.conv(w, 4) for w in wide])
    path = tmp_path_factory.mktemp("branches") / "branches.tflite"
    path.write_bytes(write_model(net.graph([net.conv(joined, 8), flat[0]])))
    return str(path)


ASKED = Session()  # one search for all questions about a network
LEAST = {"objective": "ram"}
EFFECTS = {
    "strategy": ({"ram": 8192}, "layerwise"),
    "objective": ({}, "ram"),
    "ram": ({}, 4700),
    "max_f": (LEAST, 1.1),
    "max_cost": (LEAST, 7.5e6),
    "max_ms": (LEAST, 300),
    "max_flash": (LEAST, 1024),
    "in_place": ({}, "none"),
    "image": (LEAST, "stream"),
    "segments": ({"strategy": "xcore-strips"}, "0-2x2"),
    "order": ({"in_place": "none"}, "given"),
    "hand_off": (LEAST, "row"),
    "outputs": ({}, "pool"),
    "simplify": ({}, "structure"),
    "hop": ({}, 2),
}


def plans_of(kind, model, options):
    """The plans in an answer, without the options that it repeats; or its error."""
    boards = {"boards": ["cortex-m4"]} if kind == "analyze" else {"board": "cortex-m4"}
    if kind == "front":
        options = {name: value for name, value in options.items() if name != "objective"}
    try:
        answer = handle({"kind": kind, "model": model, **boards, "options": options}, ASKED)
    except BuildtoolError as error:
        return error.text
    return answer[{"front": "points", "analyze": "boards"}.get(kind, "plan")]


@pytest.fixture
def no_compiler(monkeypatch):
    """`analyze` takes the recorded sizes of kernels and compiles nothing."""
    monkeypatch.setenv("BUILDTOOL_CLANG", "/nonexistent/clang")


@pytest.mark.slow
@pytest.mark.parametrize("name", EFFECTS)
def test_a_planning_option_has_its_effect_or_is_refused(name, branches, no_compiler):
    base, value = EFFECTS[name]
    thin = {"name": "thin.tflite", "data": thin_model(NET)} if name == "simplify" else NET
    model = {"order": branches, "in_place": "resnet8"}.get(name, thin)
    for kind in ("plan", "front", "analyze"):
        if name not in type_of(kind).takes:
            with pytest.raises(UsageError, match="it has no effect on a request of kind"):
                handle({"kind": kind, "model": NET, "board": "cortex-m4", "options": {name: value}})
            continue
        has_effect = plans_of(kind, model, {**base, name: value}) != plans_of(kind, model, base)
        assert has_effect, f"{name}={value!r} changes no answer of kind {kind} beside {base}"


# ---- files ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_file_is_taken_as_bytes_or_by_path_and_digest(tmp_path):
    data = zoo.build(NET)
    path = tmp_path / "net.tflite"
    path.write_bytes(data)
    file = {"path": str(path), "sha256": hashlib.sha256(data).hexdigest()}
    models = ({"name": "net.tflite", "data": data}, file, str(path), NET)
    assert len({handle({"kind": "plan", "model": one, "board": "host"})["plan"] for one in models}) == 1


def test_a_file_that_is_not_the_one_that_the_client_saw_is_refused(tmp_path):
    path = tmp_path / "net.tflite"
    path.write_bytes(zoo.build(NET))
    file = {"path": str(path), "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    path.write_bytes(zoo.build(f"{NET}:seed=1"))
    with pytest.raises(UsageError, match="the model changed after the request was made") as caught:
        handle({"kind": "plan", "model": file, "board": "host"})
    assert caught.value.path == str(path)
    board = tmp_path / "mine.toml"
    board.write_text('extends = "host"\n')
    file = {"path": str(board), "sha256": hashlib.sha256(b"another one").hexdigest()}
    with pytest.raises(UsageError, match="the board's file changed"):
        handle({"kind": "plan", "model": NET, "board": file})


def test_nothing_is_resolved_against_the_working_folder(tmp_path, monkeypatch):
    (tmp_path / "net.tflite").write_bytes(zoo.build(NET))
    (tmp_path / "mine.toml").write_text('extends = "host"\n')
    monkeypatch.chdir(tmp_path)
    files = [("plan", "model", "net.tflite"), ("plan", "model", {"path": "net.tflite", "sha256": ""})]
    files += [("plan", "board", "mine.toml"), ("plan", "cmsis_nn", "library"), ("sizes", "elf", "net.elf")]
    for kind, name, file in (*files, ("arena", "file", "problem.csv"), ("validate", "input", "input.npy")):
        with pytest.raises(UsageError, match="must be absolute"):
            parse(request(kind, **{name: file}))


def test_a_file_larger_than_any_model_is_refused_before_it_is_read(tmp_path, monkeypatch):
    from buildtool.plan import models

    path = tmp_path / "net.tflite"
    path.write_bytes(zoo.build(NET))
    monkeypatch.setattr(models, "MAX_BYTES", 100)
    monkeypatch.setattr(Path, "open", lambda *_: pytest.fail("it was read"))
    with pytest.raises(ModelError, match="more than 100 bytes"):
        models.load_model(str(path))
