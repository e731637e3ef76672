"""Which jobs come next. The plan is a function of the results, so a run that is taken up again goes the same way.

C and eta are tuned once per method, set and kernel, on the training rows of the first split. All points of the grid
are tried on the first fold; the best few of them, if they come near the best one, on the others. For MSM the best
of those are then tried with the other balances. Ties go to the smaller eta, then the smaller C, then the
balance that stands first. The random splits and the timings use the winner.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from statistics import fmean

from margintree.experiments.job import BALANCE, CURVE, PICTURES, SCREEN, SPLIT, TIME, VALIDATE, Job
from margintree.experiments.methods import METHODS
from margintree.experiments.paper import TABLE_1
from margintree.experiments.protocol import Protocol
from margintree.experiments.results import Row

Parameters = tuple[tuple[str, float], ...]
Done = Mapping[str, Row]


@dataclass(frozen=True)
class Cell:
    """A method on a set with a kernel: one cell of Table 2."""

    method: str
    data_set: str
    kernel: str

    def job(self, kind: str, parameters: Parameters, number: int | None = None) -> Job:
        """Return a job of this cell."""
        return Job(kind, self.method, self.data_set, self.kernel, parameters, number)


@dataclass(frozen=True)
class Plan:
    """The jobs of a run.

    Parameters
    ----------
    protocol : Protocol
    methods, data_sets : collection of str
        What is run; see ``chosen_plan``.
    """

    protocol: Protocol
    methods: tuple[str, ...]
    data_sets: tuple[str, ...]

    @property
    def cells(self) -> list[Cell]:
        """The cells of Table 2 that are run."""
        return [
            Cell(name, data_set, kernel)
            for data_set, kernel in self.protocol.settings
            for name in self.methods
            if data_set in self.data_sets and kernel in METHODS[name].kernels
        ]

    def next_jobs(self, cell: Cell, done: Done, failed: Collection[str] = ()) -> list[Job]:
        """Return the jobs of a cell that can be done now; none when the cell is finished.

        Parameters
        ----------
        cell : Cell
        done : dict
            Rows of done jobs by their keys.
        failed : collection of str
            Keys of jobs that failed in this run, which go without a result.
        """
        for stage in self._stages(cell, done):
            waiting = [job for job in stage if job.key not in done and job.key not in failed]
            if waiting:
                return waiting
        return []

    def tuned(self, cell: Cell, done: Done) -> Parameters | None:
        """Return the parameters of a cell that are best so far, or None if no point has been validated."""
        source = _tuning_cell(cell)
        values = self._validated(source, done)
        if not values:
            return None
        balanced = {
            job.parameters: fmean(done[job.key]["fold_accuracies"])
            for job in self._balance_jobs(source, done)
            if job.key in done
        }
        return best_points({**values, **balanced}, 1)[0]

    def n_jobs(self, cell: Cell) -> int:
        """Return how many jobs a cell has at most."""
        protocol, method = self.protocol, METHODS[cell.method]
        n = protocol.n_splits + 1
        if method.tuned_with is None:
            n += len(protocol.costs) * (len(protocol.etas) if cell.kernel == "rbf" else 1)
            n += min(protocol.kept_points, n - protocol.n_splits - 1)
            n += protocol.balance_points * (len(protocol.balances) - 1) * method.tunes_balance
        n += len(protocol.curve_classes) * ((cell.data_set, cell.kernel) == protocol.curve_setting)
        return n

    def other_jobs(self, done: Done) -> list[Job]:
        """Return the jobs that belong to no cell: the pictures of Figure 1."""
        data_set, kernel = self.protocol.digits_setting
        job = Job(PICTURES, "", data_set, kernel)
        return [job] if data_set in self.data_sets and job.key not in done else []

    def _stages(self, cell: Cell, done: Done) -> Iterator[list[Job]]:
        """Yield the stages of a cell. Each is computed when those before it are finished."""
        source = _tuning_cell(cell)
        yield self._screen_jobs(source)
        yield self._validate_jobs(source, done)
        if METHODS[source.method].tunes_balance:
            yield self._balance_jobs(source, done)
        parameters = self.tuned(cell, done)
        if parameters is None:
            # Every point failed: there is nothing to run with.
            return
        yield [cell.job(SPLIT, parameters, number) for number in range(self.protocol.n_splits)]
        alone = [cell.job(TIME, parameters)]
        if (cell.data_set, cell.kernel) == self.protocol.curve_setting:
            alone += [cell.job(CURVE, parameters, n) for n in self.protocol.curve_classes]
        yield alone

    def _screen_jobs(self, cell: Cell) -> list[Job]:
        protocol = self.protocol
        etas = protocol.etas if cell.kernel == "rbf" else (None,)
        base = (("balance", protocol.balances[0]),) if METHODS[cell.method].tunes_balance else ()
        return [
            cell.job(SCREEN, (("C", C), *((("gamma", eta),) if eta is not None else ()), *base))
            for eta, C in product(etas, protocol.costs)
        ]

    def _validate_jobs(self, cell: Cell, done: Done) -> list[Job]:
        jobs = self._screen_jobs(cell)
        values = {job.parameters: done[job.key]["fold_accuracies"][0] for job in jobs if job.key in done}
        if not values:
            return []
        threshold = max(values.values()) - self.protocol.kept_within
        near = {parameters: value for parameters, value in values.items() if value >= threshold}
        return [cell.job(VALIDATE, parameters) for parameters in best_points(near, self.protocol.kept_points)]

    def _validated(self, cell: Cell, done: Done) -> dict[Parameters, float]:
        """Return the accuracy over all folds of the points that got that far."""
        values = {}
        for job in self._validate_jobs(cell, done):
            if job.key in done:
                first = done[cell.job(SCREEN, job.parameters).key]["fold_accuracies"]
                values[job.parameters] = fmean(first + done[job.key]["fold_accuracies"])
        return values

    def _balance_jobs(self, cell: Cell, done: Done) -> list[Job]:
        if not METHODS[cell.method].tunes_balance:
            return []
        points = best_points(self._validated(cell, done), self.protocol.balance_points)
        return [
            cell.job(BALANCE, (*parameters[:-1], ("balance", balance)))
            for parameters in points
            for balance in self.protocol.balances[1:]
        ]


def best_points(values: Mapping[Parameters, float], n: int) -> list[Parameters]:
    """Return the points of highest accuracy; the mapping's order, which is the grid's, breaks ties.

    Examples
    --------
    >>> from margintree.experiments.plan import best_points
    >>> best_points({(("C", 1.0),): 90.0, (("C", 10.0),): 95.0, (("C", 100.0),): 95.0}, 2)
    [(('C', 10.0),), (('C', 100.0),)]
    """
    return sorted(values, key=lambda parameters: -values[parameters])[:n]


def chosen_plan(protocol: Protocol, only_methods: Collection[str] = (), only_sets: Collection[str] = ()) -> Plan:
    """Return the plan of a protocol, or of the part of it that is asked for.

    Parameters
    ----------
    protocol : Protocol
    only_methods, only_sets : collection of str
        Empty for all.
    """
    known_sets = tuple(dict.fromkeys(data_set for data_set, _ in protocol.settings))
    chosen = []
    for what, given, known in (("method", only_methods, tuple(METHODS)), ("set", only_sets, known_sets)):
        unknown = [name for name in given if name not in known]
        if unknown:
            raise ValueError(f"Unknown {what} {unknown[0]!r} for --only-{what}; the {what}s are {', '.join(known)}.")
        chosen.append(tuple(name for name in known if name in given or not given))
    return Plan(protocol, chosen[0], chosen[1])


def weight(job: Job, protocol: Protocol) -> float:
    """Return a rough guess of a job's time, to order jobs and to tell how much of the run is left."""
    facts = TABLE_1.get(job.data_set)
    n_rows, n_classes, n_features = (facts.n_train, facts.n_classes, facts.n_features) if facts else (600, 10, 64)
    fits = {VALIDATE: protocol.folds(job.data_set) - 1, BALANCE: protocol.folds(job.data_set), TIME: 2.0}
    size = (n_rows / 1000.0) * (n_rows / 1000.0 if job.kernel == "rbf" else min(n_features, 1000) / 300.0)
    effort = METHODS[job.method].effort if job.method else 0.1
    return float(0.05 + 0.1 * fits.get(job.kind, 1.0) * effort * size * (n_classes / 10.0) ** 0.7)


def _tuning_cell(cell: Cell) -> Cell:
    return Cell(METHODS[cell.method].tuned_with or cell.method, cell.data_set, cell.kernel)
