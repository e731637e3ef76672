"""Which jobs come next. The plan is a function of the results, so a run that is taken up again goes the same way.

A method is tuned once per set and kernel; then it is run on the random splits with the winning parameters, and timed.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from margintree.experiments.job import CURVE, PICTURES, SPLIT, TIME, TUNE, Job
from margintree.experiments.methods import METHODS, READING
from margintree.experiments.protocol import Protocol
from margintree.experiments.readings import READINGS
from margintree.experiments.results import Row
from margintree.experiments.tuning import Parameters


@dataclass(frozen=True)
class Cell:
    """A method on a set with a kernel: one cell of Table 2, or of a reading of the paper."""

    method: str
    data_set: str
    kernel: str

    def job(self, kind: str, parameters: Parameters = (), number: int | None = None) -> Job:
        """Return a job of this cell."""
        return Job(kind, self.method, self.data_set, self.kernel, parameters, number)

    @property
    def tuning(self) -> Job:
        """The job that tunes it, or the method whose parameters it takes."""
        return Job(TUNE, METHODS[self.method].tuned_with or self.method, self.data_set, self.kernel)


@dataclass(frozen=True)
class Plan:
    """The jobs of a run, of some methods and data sets; see ``chosen_plan``."""

    protocol: Protocol
    methods: tuple[str, ...]
    data_sets: tuple[str, ...]

    @property
    def cells(self) -> list[Cell]:
        """The cells that are run: those of Table 2, then those of the readings."""
        usual = [name for name in self.methods if METHODS[name].comparison != READING]
        places = [(s, s, kernel, usual) for s, kernel in self.protocol.settings]
        readings = [READINGS[name] for name in self.protocol.readings]
        places += [(r.data_set, r.name, r.kernel, [m for m in r.methods if m in self.methods]) for r in readings]
        return [
            Cell(method, name, kernel)
            for data_set, name, kernel, methods in places
            for method in methods
            if data_set in self.data_sets and kernel in METHODS[method].kernels
        ]

    def next_jobs(self, done: Mapping[str, Row], failed: Collection[str] = ()) -> list[Job]:
        """Return the jobs that can be done now, setting by setting.

        Parameters
        ----------
        done : dict
            Rows of done jobs by their keys.
        failed : collection of str
            Keys of jobs that failed in this run, which go without a result.
        """
        jobs = [Job(PICTURES, "", *self.protocol.digits_setting)] if self._has_pictures else []
        for cell in self.cells:
            tuned = done.get(cell.tuning.key)
            jobs += [cell.tuning] if tuned is None else self._tuned_jobs(cell, tuple(tuned["best"].items()))
        return [job for job in dict.fromkeys(jobs) if job.key not in done and job.key not in failed]

    @property
    def n_jobs(self) -> int:
        """The number of all jobs."""
        tunings = {cell.tuning for cell in self.cells}
        return len(tunings) + sum(len(self._tuned_jobs(cell, ())) for cell in self.cells) + self._has_pictures

    @property
    def _has_pictures(self) -> bool:
        return self.protocol.digits_setting[0] in self.data_sets

    def _tuned_jobs(self, cell: Cell, parameters: Parameters) -> list[Job]:
        jobs = [cell.job(SPLIT, parameters, number) for number in range(self.protocol.n_splits)]
        jobs += [] if cell.data_set in READINGS else [cell.job(TIME, parameters)]
        if (cell.data_set, cell.kernel) == self.protocol.curve_setting:
            jobs += [cell.job(CURVE, parameters, n) for n in self.protocol.curve_classes]
        return jobs


def chosen_plan(protocol: Protocol, only_methods: Collection[str] = (), only_sets: Collection[str] = ()) -> Plan:
    """Return the plan of a protocol, or of the methods and sets that are asked for."""
    known_sets = tuple(dict.fromkeys(data_set for data_set, _ in protocol.settings))
    chosen = []
    for what, given, known in (("method", only_methods, tuple(METHODS)), ("set", only_sets, known_sets)):
        unknown = [name for name in given if name not in known]
        if unknown:
            raise ValueError(f"Unknown {what} {unknown[0]!r} for --only-{what}; the {what}s are {', '.join(known)}.")
        chosen.append(tuple(name for name in known if name in given or not given))
    return Plan(protocol, chosen[0], chosen[1])
