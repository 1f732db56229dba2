"""Runs `stepladder-opt`, interrupted at a certain point: interrupted_main.py WHERE NUMBER ARGUMENTS...

WHERE is `event`, for the NUMBERth call or return of a function, or `native`, for the NUMBERth while MLIR's native
module initializes itself. With `count`, nothing is interrupted and the number of events is the last line of standard
error.
"""

import os
import signal
import sys
from types import FrameType

where, number = sys.argv.pop(1), int(sys.argv.pop(1))
events = 0
is_native = False


def interrupt_in_time(frame: FrameType, event: str, argument: object) -> None:
    global events, is_native
    if event.startswith("c_") and argument.__name__ == "exec_dynamic":
        module = frame.f_back.f_locals["module"].__name__
        is_native = event == "c_call" and module.endswith("._mlir_libs._mlir")
    if where != "native" or is_native:
        events += 1
        if events == number and where != "count":
            sys.setprofile(None)
            os.kill(os.getpid(), signal.SIGINT)


from stepladder.cli.entry import stepladder_opt
from stepladder.cli.supervision import IN_PROCESS

os.environ[IN_PROCESS] = "1"
sys.setprofile(interrupt_in_time)
status = stepladder_opt()
sys.setprofile(None)
print(events, file=sys.stderr)
sys.exit(status)
