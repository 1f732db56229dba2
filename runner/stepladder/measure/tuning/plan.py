"""The folder that the halves of `stepladder tune` share: which settings of which problems are built and measured.

`plan.json` is written first; bundles are added below it as they are built. Nothing here needs MLIR or a GPU.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from stepladder.runtime.bundle.fields import Fields, parse_object
from stepladder.runtime.errors import StepladderError
from stepladder.runtime.files import make_folder, write_json

SCHEMA_VERSION = 1
_NAME = "plan.json"
# Suffix of a file beside the path of a bundle, with the reason why there is no bundle.
REFUSED = ".refused"
# How the reason begins for which a kernel is excluded that gives other results than the reference program.
WRONG_RESULTS = "wrong results"

Knobs = dict[str, int | str]


@dataclass(frozen=True)
class Setting:
    """A knob setting of a problem: the predicted time of a launch in us, and the folder of its bundle in the plan's."""

    knobs: Knobs
    microseconds: float
    bundle: str

    def describe(self) -> str:
        """Returns the knobs as a message shows them."""
        return " ".join(f"{name}={value}" for name, value in self.knobs.items())


@dataclass(frozen=True)
class Problem:
    """A problem that is tuned.

    Args:
        name: of its payload's file.
        key: `database.problem_key` of it.
        settings: what `compile` takes without a database, then the best by the cost model, the fastest first.
    """

    name: str
    key: str
    settings: tuple[Setting, ...]


@dataclass(frozen=True)
class Plan:
    """A plan of the tuner: problems, and the settings to build and measure for each.

    Args:
        pipeline: name or file of the pipeline, as it was given.
        digest: of its text.
        target: of the kernels.
        tool_versions: of what makes them.
        problems: what for.
    """

    pipeline: str
    digest: str
    target: str
    tool_versions: dict[str, str]
    problems: tuple[Problem, ...]

    @property
    def count(self) -> int:
        """Returns the number of settings."""
        return sum(len(problem.settings) for problem in self.problems)


def write_plan(folder: Path, plan: Plan) -> None:
    """Writes a plan into its folder, which is made where it is missing.

    Args:
        folder: of the plan.
        plan: of kernels to measure.

    Raises:
        StepladderError: the folder has another plan, or other files and none, or cannot be written.
    """
    if (folder / _NAME).exists():
        if read_plan(folder) == plan:
            return
        raise StepladderError(
            f"'{folder}' holds the plan of another tuning",
            notes=["payloads, pipeline, options or tools are not the same: give another folder, or delete this one"],
        )
    make_folder(str(folder))
    try:
        is_foreign = any(not path.name.startswith(".") for path in folder.iterdir())  # temporary files begin so
    except OSError as error:
        raise StepladderError(f"cannot write into '{folder}': {error.strerror}") from None
    if is_foreign:
        raise StepladderError(f"'{folder}' has other files and no plan; it was not changed. Name another folder")
    write_json(str(folder / _NAME), {"schema_version": SCHEMA_VERSION, **asdict(plan)})


def read_plan(folder: Path) -> Plan:
    """Returns the plan in a folder.

    Args:
        folder: that `stepladder tune build` wrote.

    Raises:
        StepladderError: there is none, or it is damaged or of another version.
    """
    path = folder / _NAME
    try:
        content = path.read_bytes()
    except OSError as error:
        raise StepladderError(
            f"'{folder}' is not a folder that `stepladder tune build` made: {path.name}: {error.strerror}"
        ) from None
    fields = parse_object(content, str(path), "plan", "delete the folder, and build its kernels again")
    version = fields.integer("schema_version")
    if version != SCHEMA_VERSION:
        raise StepladderError(
            f"the plan is of version {version}, and this stepladder reads {SCHEMA_VERSION}", location=str(path)
        )
    return Plan(
        fields.string("pipeline"),
        fields.string("digest"),
        fields.string("target"),
        fields.string_map("tool_versions"),
        tuple(_problem(problem) for problem in _some(fields, "problems")),
    )


def _problem(fields: Fields) -> Problem:
    settings = (
        Setting(setting.knobs("knobs"), setting.number("microseconds"), setting.string("bundle"))
        for setting in _some(fields, "settings")
    )
    return Problem(fields.string("name"), fields.string("key"), tuple(settings))


def _some(fields: Fields, name: str) -> list[Fields]:
    """Returns the objects of a list; refuses an empty one, of which nothing could be measured."""
    objects = fields.objects(name)
    if not objects:
        raise fields.error(name, "is empty: there is nothing to measure; build the plan again")
    return objects
