"""A real HDFS on 127.0.0.1: Hadoop's own cluster for tests, a name node and a data node in one Java."""

import contextlib
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark

from tests.support.jars import fetched, find_java

POM = Path(__file__).with_name("pom.xml")
VERSION = re.findall(r"<artifactId>hadoop-client-minicluster</artifactId>\s*<version>(.+)</version>", POM.read_text())[
    0
]
START = 60.0  # seconds


@contextlib.contextmanager
def running_hdfs(folder: Path) -> Iterator[str]:
    """Start HDFS with its data in a folder, give its address (`hdfs://…`), and stop it at the end."""
    java = find_java()
    jars = [fetched(POM, f"hdfs-{VERSION}", java), Path(pyspark.__file__).parent / "jars"]
    command = [str(java), "-Xmx300m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp"]
    command += [":".join(f"{each}/*" for each in jars), "org.apache.hadoop.mapreduce.MiniHadoopClusterManager"]
    said = folder / "hdfs.xml"  # written when it is up
    command += ["-nomr", "-format", "-D", f"hdfs.minidfs.basedir={folder}/hdfs", "-writeConfig", str(said)]
    with (folder / "hdfs.log").open("w+") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=folder)
        try:
            ends = time.monotonic() + START
            while (found := re.search(r"<value>(hdfs://[^<]+)</value>.*</configuration>", _text(said), re.S)) is None:
                if process.poll() is not None or time.monotonic() > ends:
                    raise RuntimeError(f"HDFS {VERSION} did not start:\n{_text(folder / 'hdfs.log')[-3000:]}")
                time.sleep(0.1)
            yield found[1]
        finally:
            process.kill()
            process.wait()


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""
