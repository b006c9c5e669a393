"""nearfar measures, models, programs and places data on computers with near and far memory.

Layers, bottom-up (a module imports only from layers below its own, see ``ARCHITECTURE.md``):
``units errors stats records store`` → ``machine`` → ``profiles`` → ``measure`` → ``report`` →
``cli``.
"""

__version__ = "0.1.0"
