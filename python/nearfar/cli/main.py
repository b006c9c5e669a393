"""The executable: which verbs there are, and what becomes of an error.

Verb modules import only Typer at the top, so that ``nearfar --help`` answers at once.
"""

from __future__ import annotations

import os
import pkgutil
import signal
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import FrameType, ModuleType

import typer
from typer.exceptions import TyperException

from nearfar import __version__
from nearfar.cli import (
    advise,
    bench_compete,
    bench_intset,
    bench_lbm,
    bench_malloc,
    bench_map,
    bench_mapped,
    bench_matmul,
    bench_pipeline,
    bench_sort,
    bench_stencil,
    bench_stream,
    compare,
    crash_check,
    crash_replay,
    crash_run,
    doctor,
    fit_contention,
    fit_counters,
    pool_check,
    pool_info,
    pool_leaks,
    pool_shred,
    probe,
    report,
    run,
    show,
    sim,
    split,
    study,
    sweep,
    topo,
    trace_exchange,
    trace_flags,
    trace_group,
    trace_record,
    trace_show,
    trace_stats,
)
from nearfar.errors import ExitCode, MachineError, NearfarError, from_native

#: Packages of the libraries that the native core is linked with: a wheel does not bring them.
_LINKED = "libhwloc15 libpfm4 libpmemobj1 liburing2 libzstd1"


def modules(prefix: str) -> Iterator[ModuleType]:
    """The files of this folder whose name begins so: one that is added gives its verbs."""
    for found in pkgutil.iter_modules([str(Path(__file__).parent)]):
        if found.name.startswith(prefix):
            yield import_module(f"nearfar.cli.{found.name}")


app = typer.Typer(
    name="nearfar",
    help="Measure, model, program and place data on computers with near and far memory.",
    epilog="Start with `nearfar study`: it measures this machine and writes a report.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)

bench = typer.Typer(no_args_is_help=True, help="Benchmarks of one kind of work.")
bench.command()(bench_stream.stream)
bench.command()(bench_mapped.mapped)
bench.command()(bench_compete.compete)
bench.command()(bench_stencil.stencil)
bench.command()(bench_pipeline.pipeline)
bench.command()(bench_malloc.malloc)
bench.command("map")(bench_map.map_)
bench.command()(bench_intset.intset)
bench.command()(bench_sort.sort)
bench.command()(bench_lbm.lbm)
bench.command()(bench_matmul.matmul)

fit = typer.Typer(no_args_is_help=True, help="Models from measurements.")
fit.command()(fit_contention.contention)
fit.command()(fit_counters.counters)

predict = typer.Typer(no_args_is_help=True, help="What was not measured, from what was.")
for file in modules("predict_"):
    for prediction in file.VERBS:
        predict.command()(prediction)

crash = typer.Typer(no_args_is_help=True, help="What survives a power cut: every image explored.")
for crash_verb in (crash_check.check, crash_run.run, crash_replay.replay):
    crash.command()(crash_verb)

pool = typer.Typer(no_args_is_help=True, help="Look into pools of libpmemobj without opening them.")
pool.command()(pool_info.info)
pool.command()(pool_check.check)
pool.command()(pool_leaks.leaks)
pool.command()(pool_shred.shred)

trace = typer.Typer(
    cls=trace_group.TraceGroup, no_args_is_help=True,
    help="What a program asks of memory. `nearfar trace -o T -- PROGRAM` records.",
)  # fmt: skip
trace.command(context_settings={"allow_interspersed_args": False})(trace_record.record)
trace.command()(trace_stats.stats)
trace.command()(trace_show.show)
trace.command("import")(trace_exchange.import_)
trace.command()(trace_exchange.export)
trace.command()(trace_flags.flags)

for verb in (
    study.study, topo.topo, doctor.doctor, probe.probe, report.report, show.show,
    compare.compare, sweep.sweep,
):  # fmt: skip
    app.command()(verb)
app.add_typer(bench, name="bench")
app.add_typer(fit, name="fit")
app.add_typer(predict, name="predict")
app.add_typer(crash, name="crash")
app.command()(split.split)
app.add_typer(pool, name="pool")
app.add_typer(trace, name="trace")
app.command()(sim.sim)
for started in (advise.advise, run.run):
    app.command(context_settings={"allow_interspersed_args": False})(started)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"nearfar {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False,
        "--version",
        callback=_print_version,
        is_eager=True,
        help="Print the version and exit.",
    ),
) -> None:
    pass


def _show(error: NearfarError) -> int:
    print(f"nearfar: {error.what}", file=sys.stderr)
    if error.next_step:
        print(f"  next: {error.next_step}", file=sys.stderr)
    return error.exit_code


def _show_usage(error: TyperException) -> int:
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "nearfar"
    print(f"{command}: {error.format_message()}", file=sys.stderr)
    print(f"  next: {command} --help", file=sys.stderr)
    return ExitCode.BAD_INPUT


def _show_unexpected(error: Exception) -> int:
    if isinstance(error, ImportError) and error.name == "nearfar._native":
        return _show(
            MachineError(
                f"the native core cannot be loaded: {error}",
                f"install the libraries it wants, on Debian or Ubuntu: apt-get install {_LINKED}",
            )
        )
    from nearfar._native import NativeError

    if isinstance(error, NativeError):
        return _show(from_native(error))
    if os.environ.get("NEARFAR_DEBUG"):
        raise error
    return _show(
        MachineError(
            f"a bug in nearfar: {type(error).__name__}: {error}",
            "report it with your command line; NEARFAR_DEBUG=1 shows where it happened",
        )
    )


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main(arguments: list[str] | None = None) -> int:
    """Run one verb; returns the exit code of the contract and never raises on expected failures."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        result = app(arguments, prog_name="nearfar", standalone_mode=False)
        sys.stdout.flush()
        return int(result or 0)
    except TyperException as error:
        return _show_usage(error)
    except NearfarError as error:
        return _show(error)
    except KeyboardInterrupt:
        print("nearfar: interrupted", file=sys.stderr)
        return ExitCode.INTERRUPTED
    except (BrokenPipeError, SystemExit):
        # The reader of our output went away (Typer turns that into SystemExit): no harm done.
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123 - for the interpreter's last flush
        return ExitCode.OK
    except Exception as error:
        return _show_unexpected(error)


if __name__ == "__main__":
    sys.exit(main())
