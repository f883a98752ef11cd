"""Publishing tools to a depot and pulling them from one: named versions, hashed, signed where the operator asks for it.

A depot is a folder; served by any static web server, it is the same depot for everyone who can reach that server.

    index.json                                 which tools there are, each with its versions, oldest first
    tools/<tool>/<version>/manifest.json       the files of one version, their hashes, and a signature
    tools/<tool>/<version>/files/<path>        the files themselves, under the path they have in a tree of tools
"""
