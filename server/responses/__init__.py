"""`/v1/responses`: the same answers as chat completions, as items of OpenAI's Responses API. Nothing is stored here."""
