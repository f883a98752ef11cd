from toolcrib import Crib

with Crib("examples/words") as crib:
    result = crib.call_sync("count_words", text="the cat and the hat", top=2)
    print(result.value)
    print(crib.call_sync("count_words", top=2).error.message)
