from toolcrib import Crib

with Crib("examples/words") as crib:
    result = crib.call_sync("count_words", text="the cat and the hat", top=2)
    print(result.value)
    refused = crib.call_sync("count_words", top=2)
    if refused.error:
        print(refused.error.kind, "-", refused.error.message)
