"""Asking language models: many requests, each answered, explained or left for the next run, none paid for twice."""

from __future__ import annotations

from karat.llm.cache import Cache as Cache
from karat.llm.endpoint import Endpoint as Endpoint
from karat.llm.endpoint import find_model as find_model
from karat.llm.engine import Engine as Engine
from karat.llm.engine import Estimate as Estimate
from karat.llm.framing import frame as frame
from karat.llm.framing import frames as frames
from karat.llm.framing import marker as marker
from karat.llm.model import Answer as Answer
from karat.llm.model import BadAnswer as BadAnswer
from karat.llm.model import Failure as Failure
from karat.llm.model import Fault as Fault
from karat.llm.model import Model as Model
from karat.llm.model import Reply as Reply
from karat.llm.model import Request as Request
from karat.llm.model import Spent as Spent
