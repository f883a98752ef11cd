"""What was asked for is imported as the request shows it; every call is guarded all the same."""

from tools.slug_maker import make_slug

answer = make_slug(headline="How to brew a pot of tea")
print(answer.slug)
print(answer["dropped"])

try:
    make_slug(headline=7)
except Exception as problem:
    print(type(problem).__name__, problem)
