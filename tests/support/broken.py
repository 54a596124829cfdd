"""A fuzzer whose cases hold, find a fault, crash or hang."""

import os
import time
from signal import SIGKILL

from fuzz.frame import Fault, Fuzzer

WAYS = ("holds", "fault", "crash", "hang")


def case(random, folder):
    way = random.choice(WAYS)
    if way == "fault":
        raise Fault("broken on purpose")
    if way == "crash":
        os.kill(os.getpid(), SIGKILL)
    if way == "hang":
        time.sleep(1000)
    return way


BROKEN = Fuzzer("broken", "Nothing breaks.", case, short=1, long=1)
