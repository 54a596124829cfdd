"""Asking language models: many requests, each answered, explained or left for the next run, none paid for twice."""

from __future__ import annotations

from karat.llm.cache import Cache as Cache
from karat.llm.endpoint import Endpoint as Endpoint
from karat.llm.engine import Engine as Engine
from karat.llm.finding import find_model as find_model
from karat.llm.framing import frame as frame
from karat.llm.framing import frames as frames
from karat.llm.framing import marker as marker
from karat.llm.meter import Estimate as Estimate
from karat.llm.protocol import Answer as Answer
from karat.llm.protocol import BadAnswer as BadAnswer
from karat.llm.protocol import Failure as Failure
from karat.llm.protocol import Fault as Fault
from karat.llm.protocol import Model as Model
from karat.llm.protocol import Reply as Reply
from karat.llm.protocol import Request as Request
from karat.llm.protocol import Spent as Spent
