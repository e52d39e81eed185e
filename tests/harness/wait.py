"""Waiting for a condition that no barrier can announce."""
import time


class TimedOut(AssertionError):
    pass


def until(fn, timeout, what, step=0.005):
    """Call fn() until it is true; returns its value."""
    end = time.monotonic() + timeout
    while True:
        value = fn()
        if value:
            return value
        if time.monotonic() > end:
            raise TimedOut("waited %g s for %s" % (timeout, what))
        time.sleep(step)
