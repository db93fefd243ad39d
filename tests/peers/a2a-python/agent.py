"""The interop agent on the official Python SDK: JSON-RPC at /, card at the well-known path.

What it does is told by the first word of a message:

    quick WORD        answers at once
    ask WORD          asks a question, then answers with what it was told
    file WORD         answers with a file
    slow SECONDS WORD works that long, then answers
    fail WORD         fails

PORT is where it listens, PUBLIC the base URL of its card, BREAK the scenario that this run gets wrong on purpose
(quick, ask, file, poll or push): a check that stays green on it proves nothing.
"""

import asyncio
import os

import httpx
import uvicorn
from a2a.server.agent_execution.agent_executor import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
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
    Part,
    Task,
    TaskState,
    TaskStatus,
)
from starlette.applications import Starlette

PORT = int(os.environ['PORT'])
PUBLIC = os.environ.get('PUBLIC', f'http://127.0.0.1:{PORT}')
BREAK = os.environ.get('BREAK', '')


def text(words):
    return [Part(text=words)]


class Agent(AgentExecutor):
    async def execute(self, context, event_queue):
        if context.current_task is None:
            await event_queue.enqueue_event(
                Task(
                    id=context.task_id,
                    context_id=context.context_id,
                    status=TaskStatus(state=TaskState.TASK_STATE_SUBMITTED),
                    history=[context.message],
                )
            )
        task = TaskUpdater(event_queue, context.task_id, context.context_id)
        asked = self.asked(context.current_task)
        said = context.get_user_input()
        if asked is not None:
            await self.answer(task, f'booked {asked} for {said}')
            return
        verb, _, rest = said.partition(' ')
        if verb == 'quick':
            await self.answer(task, 'something else' if BREAK == 'quick' else f'quick: {rest}')
        elif verb == 'ask' and BREAK == 'ask':
            await self.answer(task, f'booked {rest} for some day')
        elif verb == 'ask':
            await task.requires_input(task.new_agent_message(text(f'Which day for {rest}?')))
        elif verb == 'file':
            raw = b'not what was asked' if BREAK == 'file' else f'report {rest}\n'.encode()
            part = Part(raw=raw, media_type='text/plain', filename='report.txt')
            await task.add_artifact([part], artifact_id='file')
            await self.answer(task, f'the report on {rest}')
        elif verb == 'slow':
            seconds, _, word = rest.partition(' ')
            await task.start_work()
            await asyncio.sleep(float(seconds))
            await self.answer(task, 'gone' if BREAK == 'poll' else f'slow: {word}')
        else:
            await task.failed(task.new_agent_message(text(f'failed: {rest}')))

    @staticmethod
    def asked(current):
        """The words a question was asked about, when this task waits for an answer."""
        if current is None:
            return None
        for message in current.history:
            words = ' '.join(part.text for part in message.parts)
            if words.startswith('ask '):
                return words.removeprefix('ask ')
        return None

    @staticmethod
    async def answer(task, words):
        await task.add_artifact(text(words), artifact_id='response', name='response')
        await task.complete()

    async def cancel(self, context, event_queue):
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def app():
    card = AgentCard(
        name='python peer',
        description='Interop agent on the official Python SDK',
        version='1.0.0',
        supported_interfaces=[AgentInterface(url=PUBLIC + '/', protocol_binding='JSONRPC', protocol_version='1.0')],
        capabilities=AgentCapabilities(streaming=True, push_notifications=True),
        default_input_modes=['text/plain'],
        default_output_modes=['text/plain'],
        skills=[AgentSkill(id='interop', name='Interop', description='Answers, asks, files, waits', tags=['test'])],
    )
    configs = InMemoryPushNotificationConfigStore()
    extra = {} if BREAK == 'push' else {'push_sender': BasePushNotificationSender(httpx.AsyncClient(), configs)}
    handler = DefaultRequestHandler(
        agent_executor=Agent(), task_store=InMemoryTaskStore(), agent_card=card, push_config_store=configs, **extra
    )
    return Starlette(
        routes=[
            *create_jsonrpc_routes(request_handler=handler, rpc_url='/'),
            *create_agent_card_routes(agent_card=card),
        ]
    )


if __name__ == '__main__':
    uvicorn.run(app(), host='127.0.0.1', port=PORT, log_level='warning', access_log=False)
