"""Reports: tables and text for terminals, pictures, pages and progress bars."""

from typing import TYPE_CHECKING

from evenlag.lazy import lazily

if TYPE_CHECKING:
    from evenlag.report.costs_text import traffic_document as traffic_document
    from evenlag.report.diagnosis_text import diagnosis_report as diagnosis_report
    from evenlag.report.documents import audit_document as audit_document
    from evenlag.report.documents import diagnosis_document as diagnosis_document
    from evenlag.report.documents import explanation_document as explanation_document
    from evenlag.report.documents import migration_document as migration_document
    from evenlag.report.documents import plan_document as plan_document
    from evenlag.report.documents import size_document as size_document
    from evenlag.report.documents import whatif_document as whatif_document
    from evenlag.report.explanation_text import explanation_report as explanation_report
    from evenlag.report.figure_files import KINDS as KINDS
    from evenlag.report.figure_files import check_kind as check_kind
    from evenlag.report.fleet_text import batch_line as batch_line
    from evenlag.report.fleet_text import commit_batch_line as commit_batch_line
    from evenlag.report.frontier_picture import draw_frontier as draw_frontier
    from evenlag.report.migration_text import migration_lines as migration_lines
    from evenlag.report.migration_text import migration_report as migration_report
    from evenlag.report.page.fleet import fleet_document as fleet_document
    from evenlag.report.page.group_document import group_document as group_document
    from evenlag.report.page.html import fleet_page as fleet_page
    from evenlag.report.page.html import group_page as group_page
    from evenlag.report.past_text import past_document as past_document
    from evenlag.report.past_text import past_table as past_table
    from evenlag.report.payoff_text import payoff_report as payoff_report
    from evenlag.report.plain import plain_text as plain_text
    from evenlag.report.progress import progress_bar as progress_bar
    from evenlag.report.progress import spinner as spinner
    from evenlag.report.progress_log import progress_lines as progress_lines
    from evenlag.report.replay_picture import draw_replay as draw_replay
    from evenlag.report.replay_text import replay_report as replay_report
    from evenlag.report.size_picture import draw_size as draw_size
    from evenlag.report.size_text import size_report as size_report
    from evenlag.report.size_text import speed_lines as speed_lines
    from evenlag.report.text import audit_report as audit_report
    from evenlag.report.text import frontier_document as frontier_document
    from evenlag.report.text import frontier_report as frontier_report
    from evenlag.report.text import phases_report as phases_report
    from evenlag.report.text import plan_report as plan_report
    from evenlag.report.whatif_text import whatif_report as whatif_report
    from evenlag.report.whatif_text import whatif_traffic as whatif_traffic

_HOMES = {
    "evenlag.report.costs_text": "traffic_document",
    "evenlag.report.diagnosis_text": "diagnosis_report",
    "evenlag.report.documents": (
        "audit_document diagnosis_document explanation_document migration_document plan_document size_document "
        "whatif_document"
    ),
    "evenlag.report.explanation_text": "explanation_report",
    "evenlag.report.figure_files": "KINDS check_kind",
    "evenlag.report.fleet_text": "batch_line commit_batch_line",
    "evenlag.report.frontier_picture": "draw_frontier",
    "evenlag.report.migration_text": "migration_lines migration_report",
    "evenlag.report.page.fleet": "fleet_document",
    "evenlag.report.page.group_document": "group_document",
    "evenlag.report.page.html": "fleet_page group_page",
    "evenlag.report.past_text": "past_document past_table",
    "evenlag.report.payoff_text": "payoff_report",
    "evenlag.report.plain": "plain_text",
    "evenlag.report.progress": "progress_bar spinner",
    "evenlag.report.progress_log": "progress_lines",
    "evenlag.report.replay_picture": "draw_replay",
    "evenlag.report.replay_text": "replay_report",
    "evenlag.report.size_picture": "draw_size",
    "evenlag.report.size_text": "size_report speed_lines",
    "evenlag.report.text": "audit_report frontier_document frontier_report phases_report plan_report",
    "evenlag.report.whatif_text": "whatif_report whatif_traffic",
}

if not TYPE_CHECKING:  # type checkers read the imports above
    __all__, __getattr__, __dir__ = lazily(__name__, _HOMES)
