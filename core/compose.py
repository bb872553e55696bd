"""Composing a configuration from conf/, the plugins' configs and the command line.

Hydra ends a process with 1 on an unknown key; here every refusal becomes an InputError with the close
names, before Hydra's own entry is called.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from core.cmdline import GROUPS
from core.config import ENSEMBLE
from core.errors import InputError
from core.plugin_manager import PluginManager

if TYPE_CHECKING:
    from omegaconf import DictConfig

CONFIG_MODULE: Final = "conf"
CONFIG_NAME: Final = "config"
VERSION_BASE: Final = "1.3"


def add_search_paths(manager: PluginManager) -> None:
    """Make Hydra look into the plugins' config folders too, after ours."""
    from hydra.core.config_search_path import ConfigSearchPath
    from hydra.core.plugins import Plugins
    from hydra.plugins.search_path_plugin import SearchPathPlugin

    paths = manager.search_paths()

    class LeadlineSearchPath(SearchPathPlugin):
        """The folders that plugins name in `config_search_path`."""

        def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
            for path in paths:
                search_path.append(provider=CONFIG_MODULE, path=path)

    registry = Plugins.instance()
    for known in registry.discover(SearchPathPlugin):
        if known.__name__ == LeadlineSearchPath.__name__:
            registry.class_name_to_class.pop(f"{known.__module__}.{known.__qualname__}", None)
            registry.plugin_type_to_subclass_list[SearchPathPlugin].remove(known)
    registry.register(LeadlineSearchPath)


def compose(overrides: Sequence[str], config_dir: str | None = None) -> dict[str, Any]:
    """The composed tree, as plain data; raises InputError."""
    return plain_tree(_compose(overrides, config_dir))


def compose_group(group: str, overrides: Sequence[str]) -> dict[str, Any]:
    """One choice of a group, with what it brings along; values that are still open are None."""
    from omegaconf import OmegaConf

    # the other groups are mandatory too: they are filled with whatever there is and not looked at
    needed = [] if group == "experiment" else [other for other in ("benchmark", "system") if other != group]
    filled = [f"{other}={options(other)[0]}" for other in needed]
    # resolved: a system's efforts may point to one of its ladders
    tree = OmegaConf.to_container(_compose([*filled, *overrides], None), resolve=True)
    assert isinstance(tree, dict)
    return {str(key): _known(value) for key, value in tree.items()}


def _known(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _known(item) for key, item in value.items()}
    return None if value == "???" else value


def plain_tree(config: DictConfig) -> dict[str, Any]:
    """The tree that Hydra hands to a job, as plain data; raises InputError."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        tree = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        raise InputError(str(error).splitlines()[0], where=getattr(error, "full_key", None) or None) from None
    assert isinstance(tree, dict)
    return _with_members({str(key): value for key, value in tree.items()})


def _with_members(tree: dict[str, Any]) -> dict[str, Any]:
    """An ensemble's members, each with its whole section: a run's identity rests on them."""
    judge = tree.get("judge")
    if not isinstance(judge, Mapping) or judge.get("provider") != ENSEMBLE:
        return tree
    members = judge.get("members")
    if isinstance(members, Mapping):
        return tree  # of a run that was composed before
    if not isinstance(members, list) or len(members) < 2:
        raise InputError(
            "an ensemble has two members or more",
            where="judge.members",
            expected="judge.members=[gpt,sonnet,…]",
            got=repr(members),
        )
    sections: dict[str, Any] = {}
    for entry in members:
        section = _member(entry)
        name = section["name"]
        if name in sections:
            raise InputError(
                f"the member {name!r} is named twice",
                where="judge.members",
                expected="a `name` of its own for each",
            )
        sections[name] = section
    return {**tree, "judge": {**judge, "members": sections}}


def _member(entry: Any) -> dict[str, Any]:
    """A member's section: a judge's config by its name, with changes where an entry makes any."""
    changes = dict(entry) if isinstance(entry, Mapping) else {}
    name = changes.pop("judge", None) if isinstance(entry, Mapping) else entry
    if not isinstance(name, str):
        raise InputError(
            "not a judge", where="judge.members", expected="a name, or {judge: NAME, …}", got=repr(entry)
        )
    section = compose_group("judge", [f"judge={name}"])["judge"]
    if section.get("provider") in (ENSEMBLE, "recorded"):
        raise InputError(
            f"{section['provider']} can't be a member", where="judge.members", expected="judges that are asked"
        )
    if unknown := sorted(changes.keys() - section.keys()):
        raise InputError(f"unknown key {unknown[0]!r}", where=f"judge.members.{name}", expected=", ".join(section))
    return {**section, **changes}


def expand(overrides: Sequence[str]) -> Iterator[list[str]]:
    """The jobs of a sweep: every combination of the values that overrides list with commas."""
    from hydra.core.override_parser.overrides_parser import OverridesParser

    choices: list[list[str]] = []
    for parsed in OverridesParser.create().parse_overrides(list(overrides)):
        if parsed.is_sweep_override():
            key = parsed.get_key_element()
            choices.append([f"{key}={value}" for value in parsed.sweep_string_iterator()])
        else:
            choices.append([parsed.input_line or ""])
    for combination in itertools.product(*choices):
        yield list(combination)


def _compose(overrides: Sequence[str], config_dir: str | None, *, explain: bool = True) -> DictConfig:
    """`explain=False` leaves Hydra's own exception: for composing inside an explanation."""
    from hydra import compose as hydra_compose
    from hydra import initialize_config_module
    from hydra.core.global_hydra import GlobalHydra
    from hydra.errors import HydraException
    from yaml import YAMLError

    before = GlobalHydra.instance().hydra  # of a job that Hydra itself runs
    GlobalHydra.instance().clear()
    searched = [f"hydra.searchpath=[{config_dir}]"] if config_dir else []
    try:
        with initialize_config_module(config_module=CONFIG_MODULE, version_base=VERSION_BASE):
            return hydra_compose(CONFIG_NAME, overrides=[*searched, *overrides])
    except YAMLError as error:
        raise InputError(f"a config file is not YAML: {' '.join(str(error).split())}") from None
    except HydraException as error:
        if not explain:
            raise
        raise _refusal(str(error), overrides, config_dir) from None
    finally:
        GlobalHydra.instance().clear()
        GlobalHydra.instance().hydra = before


def check_not_hidden() -> None:
    """Refuse a working folder whose own `conf` or `core` is found before ours.

    `python -m core.run` looks into the working folder first; the console script `leadline` does not.
    """
    ours = Path(__file__).resolve().parent.parent
    for name in ("conf", "plugins", "adapters"):
        spec = find_spec(name)
        places = [Path(place).resolve() for place in (spec.submodule_search_locations or ())] if spec else []
        if ours / name not in places[:1]:
            found = str(places[0]) if places else "nothing"
            raise InputError(
                f"the package {name!r} is not Leadline's own",
                expected="the command `leadline run …` here, or another working folder",
                got=found,
            )


def _refusal(message: str, overrides: Sequence[str], config_dir: str | None) -> InputError:
    """Hydra's complaint in our words, with close names."""
    if found := re.search(r"Could not override '([^']+)'", message):
        key = found[1]
        return InputError(f"unknown key {key!r}{_close(key, _known_keys(overrides, config_dir))}")
    if found := re.search(r"Could not (?:find|load) '([^'/]+)/([^']+)'", message):
        group, name = found[1], found[2]
        if group == "hydra":
            package = "hydra-" + name.partition("/")[2].partition("_")[0] + "-launcher"
            return InputError(
                f"hydra/{name} is not installed", expected=f"pip install {package} (see docs/sweeps.md)"
            )
        names = options(group)
        if "," in name:
            return InputError(f"{group}={name} is a sweep", expected=f"-m {group}={name}")
        return InputError(
            f"no {group} is called {name!r}{_close(name, names)}",
            expected=f"one of {', '.join(names)}{_broken_plugins()}",
        )
    if found := re.search(r"You must specify '([^']+)'", message):
        group = found[1]
        if (stranger := _unknown_top_key(overrides)) is not None:
            return stranger
        return InputError(f"no {group} is given", expected=f"{group}=NAME, one of {', '.join(options(group))}")
    return InputError(
        message.split("\nSee https://", maxsplit=1)[0].split("\nConfig search path", maxsplit=1)[0].strip()
    )


def _broken_plugins() -> str:
    """The plugins that could not be loaded: what is asked for may be theirs."""
    broken = [f"{known.name} ({known.problem})" for known in PluginManager.discover().plugins if known.problem]
    return f"; broken plugins: {', '.join(broken)}" if broken else ""


def _unknown_top_key(overrides: Sequence[str]) -> InputError | None:
    """The first word whose first key nothing is called: the likely reason why a group is not given."""
    from core.config import RunConfig

    known = [*GROUPS, *RunConfig.model_fields, "hydra"]
    for word in overrides:
        key = word.partition("=")[0].lstrip("+~").split(".")[0].split("@")[0].split("/")[0]
        if key not in known:
            return InputError(f"unknown key {key!r}{_close(key, known)}")
    return None


def options(group: str) -> list[str]:
    """The names that a config group offers, from us and from plugins."""
    from hydra import initialize_config_module
    from hydra.core.global_hydra import GlobalHydra

    GlobalHydra.instance().clear()
    try:
        with initialize_config_module(config_module=CONFIG_MODULE, version_base=VERSION_BASE):
            loader = GlobalHydra.instance().config_loader()
            return sorted(name for name in loader.get_group_options(group) if not name.startswith("_"))
    finally:
        GlobalHydra.instance().clear()


def _known_keys(overrides: Sequence[str], config_dir: str | None) -> list[str]:
    """Every key of the configuration that the chosen groups give, dotted."""
    from hydra.errors import HydraException
    from omegaconf import OmegaConf

    chosen = [word for word in overrides if word.partition("=")[0] in GROUPS]
    try:
        tree = _compose(chosen, config_dir, explain=False)
    except (HydraException, InputError):
        return list(GROUPS)

    return [*GROUPS, *_dotted(OmegaConf.to_container(tree, resolve=False))]


def _dotted(tree: Any, prefix: str = "") -> Iterator[str]:
    if not isinstance(tree, Mapping):
        return
    for key, value in tree.items():
        yield f"{prefix}{key}"
        yield from _dotted(value, f"{prefix}{key}.")


def _close(name: str, known: Sequence[str]) -> str:
    found = get_close_matches(name, known, n=3)
    if not found and "." in name:
        section, _, leaf = name.rpartition(".")
        inside = {key.rpartition(".")[2]: key for key in known if key.rpartition(".")[0] == section}
        found = [inside[key] for key in get_close_matches(leaf, list(inside), n=3)]
    return f"; did you mean {' or '.join(repr(key) for key in found)}?" if found else ""
