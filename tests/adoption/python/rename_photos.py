"""How a photo should be called. Usage: rename_photos.py CAMERA COUNTER [SUFFIX]"""
import sys


def new_name(camera, counter, suffix="jpg"):
    return f"{camera.lower()}_{int(counter):05d}.{suffix}"


def main():
    args = sys.argv[1:]
    if len(args) < 2:
        sys.stderr.write(__doc__ + "\n")
        sys.exit(1)
    print(new_name(*args))


if __name__ == "__main__":
    main()
