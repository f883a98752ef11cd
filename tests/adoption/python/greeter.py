# /// script
# requires-python = ">=3.9"
# dependencies = ["click>=8"]
# ///
import click


@click.command()
@click.argument("name")
@click.option("--times", "-n", default=1, show_default=True, help="How often.", type=click.IntRange(1, 5))
@click.option("--greeting", type=click.Choice(["Hello", "Moin"]), default="Hello")
@click.option("--shout/--no-shout", default=False, help="In capitals.")
def greet(name, times, greeting, shout):
    """Greet NAME, more than once if asked to."""
    line = f"{greeting} {name}"
    if shout:
        line = line.upper()
    for _ in range(times):
        click.echo(line)


if __name__ == "__main__":
    greet()
