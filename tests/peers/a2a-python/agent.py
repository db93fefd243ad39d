"""The interop agent on a2a-python 1.3: JSON-RPC and HTTP+JSON, one agent per kind of card.

What it does, and the variables that it heeds: ../python/interop_peer.py, which has to be on PYTHONPATH.
"""

import httpx
from a2a.server.agent_execution.agent_executor import AgentExecutor
from a2a.server.context import ServerCallContext
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import (
    BasePushNotificationSender,
    InMemoryPushNotificationConfigStore,
    InMemoryTaskStore,
    TaskUpdater,
)
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    APIKeySecurityScheme,
    Artifact,
    Part,
    SecurityRequirement,
    SecurityScheme,
    StringList,
    Task,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Value
from interop_peer import BROKEN, INPUT_MODES, KINDS, PORT, SKILL, STORE, Script, Stored, serve, streams
from starlette.routing import Mount, Route


class Agent(Script, AgentExecutor):
    updater = TaskUpdater

    @staticmethod
    def text(words):
        return [Part(text=words)]

    @staticmethod
    def words_of(message):
        return ' '.join(part.text for part in message.parts)

    @staticmethod
    def opening(context):
        return Task(
            id=context.task_id,
            context_id=context.context_id,
            status=TaskStatus(state=TaskState.TASK_STATE_SUBMITTED),
            history=[context.message],
        )

    async def ask(self, task, question):
        await task.requires_input(task.new_agent_message(self.text(question)))

    async def do_mirror(self, task, word, given):
        files = [part for part in given if part.HasField('raw')]
        for number, part in enumerate(files):
            raw = b'not what was asked' if BROKEN else part.raw[::-1]
            back = Part(raw=raw, media_type=part.media_type, filename=f'mirrored-{part.filename}')
            await task.add_artifact([back], artifact_id=f'file-{number}')
        await self.answer(task, f'mirrored {len(files)} for {word}')

    async def do_parts(self, task, word, given):
        links = [part.url for part in given if part.HasField('url')]
        data = [MessageToDict(part.data)['word'] for part in given if part.HasField('data')]
        told = ' and '.join(links + data) or 'nothing'
        back = ParseDict({'back': 'lost' if BROKEN else word}, Value())
        link = 'https://files.example/lost.pdf' if BROKEN else f'https://files.example/{word}.pdf'
        parts = [
            Part(text=f'given {told}\n'),
            Part(data=back),
            Part(url=link, media_type='application/pdf', filename=f'{word}.pdf'),
        ]
        await task.add_artifact(parts, artifact_id='response', name='response')
        await task.complete()

    @classmethod
    def finish(cls, store):
        async def finish(task, words):
            if task.status.state != TaskState.TASK_STATE_WORKING:
                return
            task.artifacts.append(Artifact(artifact_id='response', name='response', parts=cls.text(words)))
            task.status.CopyFrom(TaskStatus(state=TaskState.TASK_STATE_COMPLETED))
            task.status.timestamp.GetCurrentTime()
            await store.save(task, ServerCallContext())

        return finish


class Handler(DefaultRequestHandler):
    """The SDK's handler with what no executor can do: deviations that agents in the wild have."""

    async def on_message_send(self, params, context):
        words = params.message.parts[0].text if params.message.parts else ''
        if words.startswith('hold ') and not BROKEN:
            params.configuration.return_immediately = False
        return await super().on_message_send(params, context)

    async def on_cancel_task(self, params, context):
        if BROKEN:
            return await self.task_store.get(params.id, context)
        return await super().on_cancel_task(params, context)

    async def on_list_tasks(self, params, context):
        page = await super().on_list_tasks(params, context)
        if BROKEN:
            del page.tasks[1:]
        return page

    async def on_delete_task_push_notification_config(self, params, context):
        if not BROKEN:
            await super().on_delete_task_push_notification_config(params, context)

    async def on_subscribe_to_task(self, params, context):
        def is_end(event):
            done = TaskState.TASK_STATE_COMPLETED
            return isinstance(event, TaskStatusUpdateEvent) and event.status.state == done

        task = await self.task_store.get(params.id, context)
        events = super().on_subscribe_to_task(params, context)
        async for event in self.script.without_its_end(task, events, is_end):
            yield event


def card_of(kind, base):
    keyed = {}
    if kind == 'keyed':
        scheme = APIKeySecurityScheme(location='header', name='X-API-Key')
        keyed = {
            'security_schemes': {'key': SecurityScheme(api_key_security_scheme=scheme)},
            'security_requirements': [SecurityRequirement(schemes={'key': StringList()})],
        }
    return AgentCard(
        name='python peer',
        description='Interop agent on the official Python SDK',
        version='1.0.0',
        supported_interfaces=[
            AgentInterface(url=f'{base}/{kind}/rpc', protocol_binding='JSONRPC', protocol_version='1.0'),
            AgentInterface(url=f'{base}/{kind}/rest', protocol_binding='HTTP+JSON', protocol_version='1.0'),
        ],
        capabilities=AgentCapabilities(streaming=streams(kind), push_notifications=True),
        default_input_modes=INPUT_MODES,
        default_output_modes=['text/plain'],
        skills=[] if BROKEN else [AgentSkill(**SKILL)],
        **keyed,
    )


def agent(kind, stored):
    async def card(request):
        route = create_agent_card_routes(agent_card=card_of(kind, f'http://{request.headers["host"]}'))[0]
        return await route.endpoint(request)

    configs = InMemoryPushNotificationConfigStore()
    sender = {} if BROKEN else {'push_sender': BasePushNotificationSender(httpx.AsyncClient(), configs)}
    executor = Agent()
    handler = Handler(
        agent_executor=executor,
        task_store=stored.tasks(kind, executor, Agent.finish) if stored else InMemoryTaskStore(),
        agent_card=card_of(kind, f'http://127.0.0.1:{PORT}'),
        push_config_store=configs,
        **sender,
    )
    handler.script = executor
    return [
        Route(f'/{kind}/.well-known/agent-card.json', card, methods=['GET']),
        *create_jsonrpc_routes(request_handler=handler, rpc_url=f'/{kind}/rpc'),
        Mount(f'/{kind}/rest', routes=create_rest_routes(request_handler=handler)),
    ]


if __name__ == '__main__':
    stored = Stored() if STORE else None
    serve([route for kind in KINDS for route in agent(kind, stored)], stored)
