"""A small identity provider for tests: signs tokens, publishes its keys, answers client-credentials grants."""

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

SECRETS = {"alice": "secret"}


class Issuer:
    """Keys by id; the newest one signs."""

    def __init__(self) -> None:
        self._keys: dict[str, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey] = {}
        self.requested_paths: list[str] = []
        """The paths of the requests over HTTP."""
        self.audience = "kafka"
        self.add("first")

    def add(self, key_id: str, *, curve: bool = False) -> None:
        """Make another key, which signs from now on."""
        private_key = ec.generate_private_key(ec.SECP256R1()) if curve else rsa.generate_private_key(65537, 2048)
        self._keys[key_id] = private_key

    def key_set(self) -> str:
        """The public keys as JSON."""
        keys = []
        for key_id, key in self._keys.items():
            public: Any = key.public_key()
            form = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
            keys.append({**form.to_jwk(public, as_dict=True), "kid": key_id, "use": "sig"})
        return json.dumps({"keys": keys})

    def token(self, claims: dict[str, Any], *, key_id: str | None = None) -> str:
        """A signed token; by the newest key, if none is named."""
        name = key_id or list(self._keys)[-1]
        key = self._keys[name]
        algorithm = "RS256" if isinstance(key, rsa.RSAPrivateKey) else "ES256"
        return jwt.encode(claims, key, algorithm, {"kid": name})

    def grant(self, authorization: str, body: str, now_s: int) -> dict[str, Any] | None:
        """The answer to a client-credentials grant; ``None`` for a client that is not known."""
        user, _, secret = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        if SECRETS.get(user) != secret or parse_qs(body)["grant_type"] != ["client_credentials"]:
            return None
        claims = {"sub": user, "iss": "https://issuer.example", "aud": self.audience, "iat": now_s, "exp": now_s + 300}
        return {"access_token": self.token({**claims, "scope": "kafka"}), "token_type": "Bearer", "expires_in": 300}

    @contextmanager
    def served(self, now_s: int) -> Iterator[str]:
        """Serve keys and grants over HTTP; the address."""
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(200, issuer.key_set())

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"])).decode()
                grant = issuer.grant(self.headers["authorization"], body, now_s)
                self._answer(401 if grant is None else 200, json.dumps(grant or {"error": "invalid_client"}))

            def _answer(self, status: int, text: str) -> None:
                issuer.requested_paths.append(self.path)
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, format: str, *args: object) -> None:
                """Log nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
            server.server_close()
