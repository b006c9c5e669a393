"""``nearfar profile list``: what can be named as a profile or a host."""

from __future__ import annotations

from nearfar.cli import flags


def list_(json: flags.Json = None) -> None:
    """List device profiles and hosts by name, with latency and bandwidth of reads.

    Device profiles are names for --far and --near; hosts are names for --host. `this` is the host
    that was measured on this machine.

    Examples:

        nearfar profile list

        nearfar show optane-100
    """
    from nearfar import api
    from nearfar.cli.output import show_document
    from nearfar.report.terminal import profiles as profiles_tables

    rows = api.list_profiles()
    documents = [row.model_dump(exclude_none=True) for row in rows]
    show_document(profiles_tables.profiles(rows), {"profiles": documents}, json)
