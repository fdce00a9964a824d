"""UnregisterController: forget a controller that is gone (4.4).

Version 0. Not done: nothing; the only controller cannot be forgotten.
"""

from broker.api import Api
from broker.context import AclOperation, RequestContext
from broker.coordination.metadata.features import CONTROLLER_UNREGISTRATION_LEVEL, METADATA_VERSION
from broker.requests.topology import check_on_cluster
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.unregister_controller import UnregisterControllerRequest, UnregisterControllerResponse


async def handle(request: UnregisterControllerRequest, ctx: RequestContext) -> UnregisterControllerResponse:
    """Always a refusal: there is one controller, which is active (core B.13)."""
    check_on_cluster(ctx, AclOperation.ALTER)
    if ctx.cluster.image.features.get(METADATA_VERSION, 0) < CONTROLLER_UNREGISTRATION_LEVEL:
        reason = "The current MetadataVersion is too old to support controller unregistration."
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, reason)
    if request.controller_id == ctx.cluster.quorum.voter_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Controller cannot unregister itself while it is active.")
    reason = f"Controller ID {request.controller_id} is not currently registered."
    raise KafkaError(ErrorCode.CONTROLLER_ID_NOT_REGISTERED, reason)


def refuse(
    request: UnregisterControllerRequest,  # noqa: ARG001
    error: KafkaError,
    version: int,  # noqa: ARG001
) -> UnregisterControllerResponse:
    """At the top."""
    return UnregisterControllerResponse(error_code=error.code, error_message=error.message)


API = Api(ApiKey.UNREGISTER_CONTROLLER, (0, 0), handle, refuse)
