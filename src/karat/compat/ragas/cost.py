"""ragas' count of tokens: separate, because `ragas.cost` is imported."""

from __future__ import annotations

from typing import Any, NamedTuple


class TokenUsage(NamedTuple):
    """The tokens of the prompts and answers of an evaluation."""

    input_tokens: int
    output_tokens: int

    def cost(self, cost_per_input_token: float, cost_per_output_token: float | None = None) -> float:
        """The cost at these prices per token; answers cost as much as prompts if their price is not given."""
        per_output = cost_per_input_token if cost_per_output_token is None else cost_per_output_token
        return self.input_tokens * cost_per_input_token + self.output_tokens * per_output


def get_token_usage_for_openai(llm_result: Any) -> TokenUsage:
    """The tokens in a LangChain result of OpenAI. As `token_usage_parser=` it is not called: karat counts itself."""
    used = (llm_result.llm_output or {}).get("token_usage", {})
    return TokenUsage(used.get("prompt_tokens", 0), used.get("completion_tokens", 0))


def get_token_usage_for_anthropic(llm_result: Any) -> TokenUsage:
    """The tokens in a LangChain result of Anthropic. As `token_usage_parser=` it is not called."""
    used = [(one.message.response_metadata or {}).get("usage", {}) for some in llm_result.generations for one in some]
    return TokenUsage(*(sum(one.get(f"{side}_tokens", 0) for one in used) for side in ("input", "output")))
