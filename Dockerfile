# A server for an exported ranker: no torch, no root.
#
#   docker build --tag secondlook .                        # or --build-arg ENGINE=onnx
#   secondlook key search-team --keys keys/keys.txt
#   docker run --publish 8080:8080 --volume ./my.ranker:/ranker:ro --volume ./keys:/keys:ro secondlook
#
# It asks for a key, as other machines can reach it; `secondlook /ranker --host 0.0.0.0 --no-keys` does not.
# What follows the image's name takes the place of CMD: a ranker, and options of `secondlook serve`.

# Libraries come by the hashes in requirements/, which `requirements/lock` makes anew. The base image
# is pinned by digest at a release (`python release/check.py --pinned`); updates come by Dependabot.

FROM python:3.12-slim AS build
ARG ENGINE=openvino
COPY requirements /source/requirements
RUN python -m venv /opt/secondlook
RUN /opt/secondlook/bin/pip install --no-cache-dir --require-hashes -r /source/requirements/${ENGINE}.txt
COPY pyproject.toml README.md LICENSE /source/
COPY src /source/src
RUN python -m venv /opt/build
RUN /opt/build/bin/pip install --no-cache-dir --require-hashes -r /source/requirements/build.txt
RUN /opt/build/bin/pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /opt/build/wheel /source
RUN /opt/secondlook/bin/pip install --no-cache-dir --no-deps /opt/build/wheel/*.whl

FROM python:3.12-slim
COPY --from=build /opt/secondlook /opt/secondlook
# Nothing is written but logs, so the root file system may be read-only; /tmp is for --workers.
USER 10001:10001
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
EXPOSE 8080
HEALTHCHECK --start-period=60s CMD ["/opt/secondlook/bin/python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8080/health', timeout=3)"]
ENTRYPOINT ["/opt/secondlook/bin/secondlook", "serve"]
CMD ["/ranker", "--host", "0.0.0.0", "--keys", "/keys/keys.txt"]
