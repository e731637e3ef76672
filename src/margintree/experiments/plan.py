"""Which jobs come next. The plan is a function of the results, so a resumed run continues in the same way.

A method is tuned once per set and kernel; then it is run on the random splits with the winning parameters, and timed.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from margintree.experiments.job import CURVE, PICTURES, SPLIT, TIME, TUNE, Job
from margintree.experiments.methods import METHODS, READING, READINGS
from margintree.experiments.protocol import Protocol
from margintree.experiments.results import Row
from margintree.experiments.tuning import Parameters


@dataclass(frozen=True)
class Plan:
    """The jobs of a run, of some methods and data sets; see ``chosen_plan``."""

    protocol: Protocol
    methods: tuple[str, ...]
    data_sets: tuple[str, ...]

    @property
    def cells(self) -> list[Job]:
        """The cells that are run, each by one of its jobs: those of Table 2, then those of the readings."""
        usual = [name for name in self.methods if METHODS[name].comparison != READING]
        places = [(s, s, kernel, usual) for s, kernel in self.protocol.settings]
        readings = [READINGS[name] for name in self.protocol.readings]
        places += [(r.data_set, r.name, r.kernel, [m for m in r.methods if m in self.methods]) for r in readings]
        return [
            Job(SPLIT, method, name, kernel)
            for data_set, name, kernel, methods in places
            for method in methods
            if data_set in self.data_sets and kernel in METHODS[method].kernels
        ]

    def next_jobs(self, done: Mapping[str, Row], failed: Collection[str] = ()) -> list[Job]:
        """Return the jobs that can be done now, setting by setting.

        ``done`` has the rows of finished jobs by their keys, ``failed`` the keys of failed jobs.
        """
        jobs = self._pictures
        for cell in self.cells:
            tuned = done.get(tuning_of(cell).key)
            jobs += [tuning_of(cell)] if tuned is None else self._tuned_jobs(cell, tuple(tuned["best"].items()))
        return [job for job in dict.fromkeys(jobs) if job.key not in done and job.key not in failed]

    @property
    def n_jobs(self) -> int:
        """The number of all jobs."""
        tuned = [job for cell in self.cells for job in self._tuned_jobs(cell, ())]
        return len(set(map(tuning_of, self.cells))) + len(tuned) + len(self._pictures)

    @property
    def _pictures(self) -> list[Job]:
        setting = self.protocol.digits_setting
        return [Job(PICTURES, "", *setting)] if setting[0] in self.data_sets else []

    def _tuned_jobs(self, cell: Job, parameters: Parameters) -> list[Job]:
        tuned = replace(cell, parameters=parameters)
        jobs = [replace(tuned, number=number) for number in range(self.protocol.n_splits)]
        jobs += [] if cell.data_set in READINGS else [replace(tuned, kind=TIME)]
        if (cell.data_set, cell.kernel) == self.protocol.curve_setting:
            jobs += [replace(tuned, kind=CURVE, number=n) for n in self.protocol.curve_classes]
        return jobs


def tuning_of(cell: Job) -> Job:
    """Return the job that tunes a cell, or the method whose parameters it takes."""
    return replace(cell, kind=TUNE, method=METHODS[cell.method].tuned_with or cell.method)


def chosen_plan(protocol: Protocol, only_methods: Collection[str] = (), only_sets: Collection[str] = ()) -> Plan:
    """Return the plan of a protocol, or of the selected methods and sets."""
    known_sets = tuple(dict.fromkeys(data_set for data_set, _ in protocol.settings))
    chosen = []
    for what, given, known in (("method", only_methods, tuple(METHODS)), ("set", only_sets, known_sets)):
        unknown = [name for name in given if name not in known]
        if unknown:
            raise ValueError(f"Unknown {what} {unknown[0]!r} for --only-{what}; the {what}s are {', '.join(known)}.")
        chosen.append(tuple(name for name in known if name in given or not given))
    return Plan(protocol, chosen[0], chosen[1])
