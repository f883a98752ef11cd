"""A voice agent's side of the tools: prompt, session, messages and intents."""

import asyncio
from dataclasses import replace
from pathlib import Path

from toolcrib import Call, Crib
from toolcrib.build import build


async def main() -> None:
    build(Path("examples/folders/tools"))
    async with Crib("examples/folders") as crib:
        print(crib.prompt("voice", max_characters=500).text)

        async def send(message: object) -> None:
            print("to the client:", message)

        session = crib.session(
            mode="voice", send=send, on_intent=lambda intent: print("intent:", intent.type), max_repeats=2
        )
        call = Call(name="refund_order", arguments={"order_id": "A17", "amount": 12.5}, session=session)
        asked = await crib.call(call)
        if asked.error:
            print(asked.error.kind)
            # The customer said yes: the token of the answer lets this very call run, once.
            result = await crib.call(replace(call, confirmation=str(asked.error.details["confirmation"])))
            print(result.value, dict(session.state))


asyncio.run(main())
