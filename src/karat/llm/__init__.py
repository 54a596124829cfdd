"""Calling language models: requests → answers or failures, with a cache, a budget and retries."""

from __future__ import annotations

from karat._internal.model_settings import ModelSettings as ModelSettings
from karat.llm.budget import Spent as Spent
from karat.llm.cache import Cache as Cache
from karat.llm.endpoint import Endpoint as Endpoint
from karat.llm.endpoint import find_model as find_model
from karat.llm.engine import Engine as Engine
from karat.llm.engine import Estimate as Estimate
from karat.llm.engine import Stop as Stop
from karat.llm.faults import Fault as Fault
from karat.llm.model import Model as Model
from karat.llm.model import Reply as Reply
from karat.llm.request import Answer as Answer
from karat.llm.request import BadAnswer as BadAnswer
from karat.llm.request import Failure as Failure
from karat.llm.request import Job as Job
from karat.llm.request import Request as Request
from karat.llm.request import Step as Step
from karat.llm.request import Steps as Steps
from karat.llm.request import frame as frame
from karat.llm.request import frames as frames
from karat.llm.request import marker as marker
