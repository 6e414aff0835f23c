"""What can go wrong between us and an E2B sandbox, in plain words. Floor 1.

The SDK's own words stay out of the messages: some quote addresses and tokens. They are in the error's cause.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from mdmemory.backends.shell import LostConnection
from mdmemory.errors import ConfigError, MdmemoryError, Unavailable

T = TypeVar("T")


class TooManyRequests(Unavailable):
    """E2B refused the request, and did nothing."""


_LOST: Final = "the connection to the sandbox broke, and what was under way may have been done or not. Try again."
_SETTINGS: Final = "E2B can't use these settings. Look at the template, the timeout and the other options."
_AGENT: Final = "the sandbox was paused while it did not answer. Resume it once with AsyncSandbox.connect(ID, on_resume='reboot')."


async def translated(work: Coroutine[Any, Any, T], *, inside: bool = False) -> T:
    """Do what the SDK is asked for; its errors come out as ours.

    Args:
        inside: it is asked of the sandbox, not of E2B's API.

    Raises:
        LostConnection: asking again on a new connection may help.
        TooManyRequests: asking again after a while may help.
        ConfigError: the key or the template can't be used.
        Unavailable: anything else.
    """
    try:
        return await work
    except MdmemoryError:
        raise
    except Exception as error:  # the SDK lets out its own, the transport's and bare ones: all come out as ours, with a cause
        raise (_inside(error) if inside else None) or _error(error) from error


def _inside(error: Exception) -> MdmemoryError | None:
    from e2b import exceptions as sdk

    match error:
        case sdk.AuthenticationException():  # the token of the sandbox, not our key
            return LostConnection("the sandbox does not know us any more. Try again.")
        case sdk.InvalidArgumentException() | sdk.NotFoundException():
            return Unavailable("the sandbox could not do what it was asked to. Look whether its home folder is there.")
    return None


def _error(error: Exception) -> MdmemoryError:
    """Some of the SDK's errors are no `SandboxException`, and some of its `TimeoutException`s are no time-outs."""
    from e2b import exceptions as sdk

    status = getattr(error, "status_code", None)
    match error:
        case sdk.AuthenticationException():
            return ConfigError("E2B refused the API key, or there is none. Set E2B_API_KEY, or pass api_key.")
        case sdk.RateLimitException():
            return TooManyRequests("E2B takes no more requests for now; nothing was done. Try again in a minute.")
        case sdk.ServiceBusyException():
            return Unavailable("E2B is busy; nothing was done. Try again in a minute.")
        case sdk.NotEnoughSpaceException():
            return Unavailable("the sandbox's disk is full; nothing was written. Make room in it.")
        case sdk.GuestUnresponsiveException():
            return Unavailable(_AGENT)
        case sdk.SandboxNotRunningException() | sdk.SandboxNotFoundException():
            return LostConnection("the sandbox is not running any more. Try again.")
        case sdk.SandboxUnreachableException():
            return LostConnection(_LOST)
        case sdk.TimeoutException():
            return Unavailable("the sandbox gave no answer in time, and what was under way may have been done or not. Try again.")
        case sdk.SandboxException() if status == 404:
            return ConfigError("E2B has no such template: build it, or name one that is there, as in e2b://base?memory=NAME.")
        case sdk.InvalidArgumentException() | sdk.TemplateException():
            return ConfigError(_SETTINGS)
        case sdk.SandboxException() if status == 400:
            return ConfigError(_SETTINGS)
        case sdk.SandboxException():
            return Unavailable(f"E2B failed{f' with status {status}' if status else ''}. Try again later.")
        case _:
            return LostConnection(_LOST)
