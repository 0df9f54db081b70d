"""The commands, each in a file of its own: to add one, write its file and a line here."""

from evenlag.cli.commands.audit import audit as audit
from evenlag.cli.commands.demo import demo as demo
from evenlag.cli.commands.export import export as export
from evenlag.cli.commands.frontier import frontier as frontier
from evenlag.cli.commands.plan import plan as plan
from evenlag.cli.commands.publish import publish as publish
from evenlag.cli.commands.replay import replay as replay
from evenlag.cli.commands.size import size as size
from evenlag.cli.commands.snapshot import snapshot as snapshot
from evenlag.cli.commands.stream import stream as stream
from evenlag.cli.commands.whatif import whatif as whatif
