"""Import a built tool as its request shows; every call still passes the whole pipeline."""

from tools.slug_maker import make_slug

answer = make_slug(headline="How to brew a pot of tea")
print(answer.slug)
print(answer["dropped"])

try:
    make_slug(headline=7)
except Exception as problem:
    print(type(problem).__name__, problem)
