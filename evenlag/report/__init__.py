"""Reports: tables and text for terminals, pictures, pages and progress bars."""

from typing import TYPE_CHECKING

from evenlag.lazy import lazily

if TYPE_CHECKING:
    from evenlag.report.costs_text import traffic_document, traffic_fields
    from evenlag.report.diagnosis_text import diagnosis_report
    from evenlag.report.documents import (
        audit_document,
        diagnosis_document,
        explanation_document,
        migration_document,
        plan_document,
        size_document,
        whatif_document,
    )
    from evenlag.report.explanation_text import explanation_report
    from evenlag.report.figure_files import KINDS, check_kind
    from evenlag.report.fleet_text import batch_line, commit_batch_line
    from evenlag.report.frontier_picture import draw_frontier
    from evenlag.report.migration_text import migration_lines, migration_report
    from evenlag.report.page.fleet import fleet_document
    from evenlag.report.page.group_document import group_document
    from evenlag.report.page.html import fleet_page, group_page
    from evenlag.report.past_text import past_document, past_table
    from evenlag.report.payoff_text import payoff_document, payoff_report
    from evenlag.report.plain import plain_text
    from evenlag.report.progress import progress_bar, spinner
    from evenlag.report.progress_log import progress_lines
    from evenlag.report.replay_picture import draw_replay
    from evenlag.report.replay_text import replay_report
    from evenlag.report.size_picture import draw_size
    from evenlag.report.size_text import answer_to, size_report, speed_lines
    from evenlag.report.text import audit_report, frontier_document, frontier_report, phases_report, plan_report
    from evenlag.report.whatif_text import whatif_report, whatif_traffic

__all__ = [
    "KINDS",
    "answer_to",
    "audit_document",
    "audit_report",
    "batch_line",
    "check_kind",
    "commit_batch_line",
    "diagnosis_document",
    "diagnosis_report",
    "draw_frontier",
    "draw_replay",
    "draw_size",
    "explanation_document",
    "explanation_report",
    "fleet_document",
    "fleet_page",
    "frontier_document",
    "frontier_report",
    "group_document",
    "group_page",
    "migration_document",
    "migration_lines",
    "migration_report",
    "past_document",
    "past_table",
    "payoff_document",
    "payoff_report",
    "phases_report",
    "plain_text",
    "plan_document",
    "plan_report",
    "progress_bar",
    "progress_lines",
    "replay_report",
    "size_document",
    "size_report",
    "speed_lines",
    "spinner",
    "traffic_document",
    "traffic_fields",
    "whatif_document",
    "whatif_report",
    "whatif_traffic",
]

_HOMES = {
    "KINDS": "evenlag.report.figure_files",
    "answer_to": "evenlag.report.size_text",
    "audit_document": "evenlag.report.documents",
    "audit_report": "evenlag.report.text",
    "batch_line": "evenlag.report.fleet_text",
    "check_kind": "evenlag.report.figure_files",
    "commit_batch_line": "evenlag.report.fleet_text",
    "diagnosis_document": "evenlag.report.documents",
    "diagnosis_report": "evenlag.report.diagnosis_text",
    "draw_frontier": "evenlag.report.frontier_picture",
    "draw_replay": "evenlag.report.replay_picture",
    "draw_size": "evenlag.report.size_picture",
    "explanation_document": "evenlag.report.documents",
    "explanation_report": "evenlag.report.explanation_text",
    "fleet_document": "evenlag.report.page.fleet",
    "fleet_page": "evenlag.report.page.html",
    "frontier_document": "evenlag.report.text",
    "frontier_report": "evenlag.report.text",
    "group_document": "evenlag.report.page.group_document",
    "group_page": "evenlag.report.page.html",
    "migration_document": "evenlag.report.documents",
    "migration_lines": "evenlag.report.migration_text",
    "migration_report": "evenlag.report.migration_text",
    "past_document": "evenlag.report.past_text",
    "past_table": "evenlag.report.past_text",
    "payoff_document": "evenlag.report.payoff_text",
    "payoff_report": "evenlag.report.payoff_text",
    "phases_report": "evenlag.report.text",
    "plain_text": "evenlag.report.plain",
    "plan_document": "evenlag.report.documents",
    "plan_report": "evenlag.report.text",
    "progress_bar": "evenlag.report.progress",
    "progress_lines": "evenlag.report.progress_log",
    "replay_report": "evenlag.report.replay_text",
    "size_document": "evenlag.report.documents",
    "size_report": "evenlag.report.size_text",
    "speed_lines": "evenlag.report.size_text",
    "spinner": "evenlag.report.progress",
    "traffic_document": "evenlag.report.costs_text",
    "traffic_fields": "evenlag.report.costs_text",
    "whatif_document": "evenlag.report.documents",
    "whatif_report": "evenlag.report.whatif_text",
    "whatif_traffic": "evenlag.report.whatif_text",
}

if not TYPE_CHECKING:  # type checkers read the imports above
    __getattr__, __dir__ = lazily(__name__, _HOMES)
