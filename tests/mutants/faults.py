"""The faults that tests/mutants/run puts into the sources, one at a time."""

import faults_durability
import faults_engine
import faults_ordered
import faults_server

ALL = faults_durability.ALL + faults_engine.ALL + faults_ordered.ALL + faults_server.ALL
