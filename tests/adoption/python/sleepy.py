import threading
import signal
import os

lock = threading.Lock()


def sleepy(names: list[str]) -> list[str]:
    """Greet names in threads."""
    out = {}
    def work(name):
        with lock:
            out[name] = f"hi {name}"
    threads = [threading.Thread(target=work, args=(n,)) for n in names]
    [t.start() for t in threads]
    [t.join() for t in threads]
    os.environ["SEEN"] = "1"
    os.chdir("/")
    return [out[n] for n in names]
