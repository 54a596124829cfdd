"""The work of a worker process: a call and a body in, a reply and a body out. Each task is registered by its name."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import msgspec

from karat.web.messages import Call, Progress, Reply
from karat.web.problems import Refused, reply_to
from karat.web.settings import MEGABYTE

Answer = tuple[Reply, bytes]
Task = Callable[[Call, bytes, Progress], Answer]
TASKS: dict[str, Task] = {}
"""Every task by its name, from the modules below."""
_MODULES = ("api.evaluating", "api.verdicts", "api.stored_runs", "api.name_lists", "futureagi.evaluations")
_SCREENS = ("view.runs_screen", "view.run_screen", "view.compare_screen", "view.query_screen", "label.label_screen")
JOB = "_job"
"""The end of the name of a task that is done as a job."""
LATER = "later"
"""The argument of a call that may take long; without it, one that calls a language model is answered with 425."""
TOO_EARLY = 425


def task(name: str) -> Callable[[Task], Task]:
    """Register a function as a task."""

    def register(function: Task) -> Task:
        TASKS[name] = function
        return function

    return register


def load_tasks(*, view: bool = False) -> None:
    """Import every module with tasks: those of the service, or those of the workbench."""
    for module in _SCREENS if view else _MODULES:
        import_module(f"karat.web.{module}")


def do(call: Call, body: bytes, progress: Progress) -> Answer:
    """The answer to a call; an error is an answer, too."""
    try:
        reply, content = TASKS[call.task](call, body, progress)
        check_answer(len(content), call)
    except RecursionError:
        reply, content = reply_to(Refused(400, "the body is nested too deeply"), call.task, call.accept, call.request)
    except Exception as error:  # noqa: BLE001 (a worker outlives any request)
        page = call.task.startswith("view_")
        reply, content = reply_to(error, call.task, call.accept, call.request, page=page)
    return reply, _without_addresses(reply, content, call)


def _without_addresses(reply: Reply, content: bytes, call: Call) -> bytes:
    """An answer that does not tell the addresses of the operator's models; runs in files do not have them."""
    if reply.content_type.startswith("application/vnd.") or not any("://" in model for model in call.models):
        return content
    from karat.web.api.allowed import without_addresses

    return without_addresses(content.decode("utf-8", "surrogateescape"), call.models).encode("utf-8", "surrogateescape")


def check_answer(size: int, call: Call) -> None:
    """Refuse an answer of too many bytes: the server holds it in memory, whole."""
    if size > (most := call.limits.answer):
        raise Refused(413, f"the answer has more than {most / MEGABYTE:g} MB", hint='fewer metrics, or "table": false')


def read_json(body: bytes, kind: Any = Any) -> Any:
    """The JSON of a body, of one kind."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise Refused(400, f"the body cannot be read: {error}") from error
    except msgspec.DecodeError as error:
        raise Refused(400, f"the body is not JSON: {error}") from error
    except UnicodeDecodeError as error:
        raise Refused(400, "the body is not UTF-8") from error
    except RecursionError as error:
        raise Refused(400, "the body is nested too deeply") from error


def json_answer(value: Any, status: int = 200) -> Answer:
    """An answer in JSON; what is not a number is null."""
    return Reply(status), msgspec.json.encode(value)
