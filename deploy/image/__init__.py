"""The image: assembled from locked parts by a program in plain Python, without a daemon, a registry or rights of root.

    python -m deploy.image build            an OCI layout in build/image, for amd64 and arm64 (`make image`)
    python -m deploy.image rootfs FOLDER    the files of the image in a folder, for a runtime or a chroot
    python -m deploy.image lock             take today's versions and hashes into locked/ (needs apt and Python 3.11)

How the parts become an image, in the order of the modules:

    selection   which packages of Debian are in the image, which are left out, and why
    locks       reads locked/: each package and each wheel with its version and SHA-256
    renewal     writes locked/ anew, from Debian's signed index and from pip's resolver
    fetching    brings what the locks name into a cache; a file with another hash is refused
    archives    reads packages and wheels                       ─┐
    tree        the files of the image, in memory                │ run by the image's own Python, so that neither its
    contents    what the three layers hold                       │ bytecode nor its compression depends on the machine
    bytecode    compiles all modules                             │ that builds: the same locks and sources give the
    elf, checks every library is there, nothing is writable …    │ same digest everywhere
    licences, bom   what is in it, and under which terms         │
    layout      layers, manifests, index                        ─┘

An image for another architecture is assembled and checked the same way; nothing of it is started.
"""
