"""The command line ``mig-opt``.

Exit codes: 0 done; 1 the answer is no (invalid, infeasible, nothing found); 2 bad input or usage; 70 a defect of
mig_opt; 130 interrupted; 141 nobody reads the output any more. Results go to standard output, errors to standard error.

Solvers, file formats and tables are imported inside the commands that need them, so that ``--help`` comes at once.
Here nothing is imported but what the interpreter has loaded anyway: nobody heeds Ctrl-C before :func:`main` runs.
"""

import os
import sys

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit.

    Parameters
    ----------
    arguments : list of str, optional
        Command and options; by default those that the process was started with.
    """
    try:
        # Here, so that Ctrl-C while modules are loaded ends the program in the same way as later on.
        from mig_opt.cli.streams import open_streams

        open_streams()
        from mig_opt.cli.app import command_line
        from mig_opt.cli.commands import COMMANDS
        from mig_opt.cli.completion import PROGRAM, VARIABLE, asked_of

        arguments = list(sys.argv[1:] if arguments is None else arguments)
        asked = asked_of(os.environ)
        if asked is not None:
            from typer.completion import completion_init  # type: ignore[attr-defined]  # imported there

            completion_init()
        first = arguments[:1] if asked is None else [asked]
        listed = asked is None and not any(name.split()[0] in arguments for name in COMMANDS)
        command_line(*first, listed=listed)(args=arguments, prog_name=PROGRAM, complete_var=VARIABLE)
    except (KeyboardInterrupt, RuntimeError) as error:
        # Python 3.11 makes the other error of Ctrl-C that comes while a class is made.
        if isinstance(error, RuntimeError) and not isinstance(error.__cause__, KeyboardInterrupt):
            raise
        from mig_opt.cli.streams import interrupted

        sys.exit(interrupted())
    except (OSError, SystemExit) as error:  # from the help, which belongs to no command
        # The library of commands exits with 1 where nobody reads it.
        refused = error.__context__ if isinstance(error, SystemExit) else error
        if not isinstance(refused, OSError):
            raise
        from mig_opt.cli.errors import report

        sys.exit(report(refused))
    finally:
        from mig_opt.cli.streams import drain_errors

        drain_errors()
