"""Pages: self-contained HTML files about a group or a fleet, made from a document that is also their JSON."""
