"""The interop agent on a2a-python 0.3.26, the last line that speaks A2A 0.3 alone: JSON-RPC.

What it does, and the variables that it heeds: ../python/interop_peer.py, which has to be on PYTHONPATH.
"""

import base64
from datetime import datetime, timezone

import httpx
from a2a.server.agent_execution import AgentExecutor
from a2a.server.apps import A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import (
    BasePushNotificationSender,
    InMemoryPushNotificationConfigStore,
    InMemoryTaskStore,
    TaskUpdater,
)
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentSkill,
    APIKeySecurityScheme,
    Artifact,
    DataPart,
    FilePart,
    FileWithBytes,
    FileWithUri,
    In,
    MessageSendConfiguration,
    Part,
    SecurityScheme,
    Task,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
    TextPart,
)
from interop_peer import BROKEN, INPUT_MODES, KINDS, PORT, SKILL, STORE, Script, Stored, serve, streams
from starlette.routing import Route


def files_of(parts, form):
    return [part.root.file for part in parts if isinstance(part.root, FilePart) and isinstance(part.root.file, form)]


class Agent(Script, AgentExecutor):
    updater = TaskUpdater

    @staticmethod
    def text(words):
        return [Part(root=TextPart(text=words))]

    @staticmethod
    def words_of(message):
        return ' '.join(part.root.text for part in message.parts if isinstance(part.root, TextPart))

    @staticmethod
    def opening(context):
        return Task(
            id=context.task_id,
            context_id=context.context_id,
            status=TaskStatus(state=TaskState.submitted),
            history=[context.message],
        )

    async def ask(self, task, question):
        await task.requires_input(task.new_agent_message(self.text(question)), final=True)

    async def do_mirror(self, task, word, given):
        files = files_of(given, FileWithBytes)
        for number, file in enumerate(files):
            raw = b'not what was asked' if BROKEN else base64.b64decode(file.bytes)[::-1]
            back = FileWithBytes(
                bytes=base64.b64encode(raw).decode(), mime_type=file.mime_type, name=f'mirrored-{file.name}'
            )
            await task.add_artifact([Part(root=FilePart(file=back))], artifact_id=f'file-{number}')
        await self.answer(task, f'mirrored {len(files)} for {word}')

    async def do_parts(self, task, word, given):
        links = [file.uri for file in files_of(given, FileWithUri)]
        data = [part.root.data['word'] for part in given if isinstance(part.root, DataPart)]
        told = ' and '.join(links + data) or 'nothing'
        link = 'https://files.example/lost.pdf' if BROKEN else f'https://files.example/{word}.pdf'
        parts = [
            *self.text(f'given {told}\n'),
            Part(root=DataPart(data={'back': 'lost' if BROKEN else word})),
            Part(root=FilePart(file=FileWithUri(uri=link, mime_type='application/pdf', name=f'{word}.pdf'))),
        ]
        await task.add_artifact(parts, artifact_id='response', name='response')
        await task.complete()

    @classmethod
    def finish(cls, store):
        async def finish(task, words):
            if task.status.state != TaskState.working:
                return
            artifact = Artifact(artifact_id='response', name='response', parts=cls.text(words))
            status = TaskStatus(state=TaskState.completed, timestamp=datetime.now(timezone.utc).isoformat())
            await store.save(task.model_copy(update={'artifacts': [artifact], 'status': status}))

        return finish


class Handler(DefaultRequestHandler):
    """The SDK's handler with what no executor can do: deviations that agents in the wild have."""

    async def on_message_send(self, params, context=None):
        if Agent.words_of(params.message).startswith('hold ') and not BROKEN:
            params.configuration = params.configuration or MessageSendConfiguration()
            params.configuration.blocking = True
        return await super().on_message_send(params, context)

    async def on_cancel_task(self, params, context=None):
        if BROKEN:
            return await self.task_store.get(params.id, context)
        return await super().on_cancel_task(params, context)

    async def on_delete_task_push_notification_config(self, params, context=None):
        if not BROKEN:
            await super().on_delete_task_push_notification_config(params, context)

    async def on_resubscribe_to_task(self, params, context=None):
        def is_end(event):
            return isinstance(event, TaskStatusUpdateEvent) and event.status.state == TaskState.completed

        task = await self.task_store.get(params.id, context)
        events = super().on_resubscribe_to_task(params, context)
        async for event in self.script.without_its_end(task, events, is_end):
            yield event


def card_of(kind, base):
    keyed = {}
    if kind == 'keyed':
        scheme = SecurityScheme(root=APIKeySecurityScheme(in_=In.header, name='X-API-Key'))
        keyed = {'security_schemes': {'key': scheme}, 'security': [{'key': []}]}
    return AgentCard(
        name='python 0.3 peer',
        description='Interop agent on the official Python SDK of A2A 0.3',
        version='1.0.0',
        url=f'{base}/{kind}/rpc',
        capabilities=AgentCapabilities(streaming=streams(kind), push_notifications=True),
        default_input_modes=INPUT_MODES,
        default_output_modes=['text/plain'],
        skills=[] if BROKEN else [AgentSkill(**SKILL)],
        **keyed,
    )


def agent(kind, stored):
    configs = InMemoryPushNotificationConfigStore()
    sender = None if BROKEN else BasePushNotificationSender(httpx.AsyncClient(), configs)
    executor = Agent()
    tasks = stored.tasks(kind, executor, Agent.finish) if stored else InMemoryTaskStore()
    handler = Handler(agent_executor=executor, task_store=tasks, push_config_store=configs, push_sender=sender)
    handler.script = executor
    card_url, rpc_url = f'/{kind}/.well-known/agent-card.json', f'/{kind}/rpc'

    def routes(base):
        application = A2AStarletteApplication(agent_card=card_of(kind, base), http_handler=handler)
        rpc, card = application.routes(agent_card_url=card_url, rpc_url=rpc_url)
        return rpc, card

    async def card(request):
        _, route = routes(f'http://{request.headers["host"]}')
        return await route.endpoint(request)

    rpc, _ = routes(f'http://127.0.0.1:{PORT}')
    return [rpc, Route(card_url, card, methods=['GET'])]


if __name__ == '__main__':
    stored = Stored() if STORE else None
    serve([route for kind in KINDS for route in agent(kind, stored)], stored)
