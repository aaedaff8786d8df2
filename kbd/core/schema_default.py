"""The schema that `kbd graph init` writes: the types of the public `ontology` skill, with everything in it enforced."""

from __future__ import annotations

DEFAULT_SCHEMA = """\
# The schema of graph.jsonl. kbd refuses what breaks it, before anything is written.
#   kbd graph coverage      what is declared here, how it is enforced, and what it has checked so far
# A type with `properties` is closed: other properties are refused, unless it says `open: true`.
version: 1

types:
  Person:
    required: [name]
    properties: {name: string, email: email, phone: string, organization: ref(Organization), notes: string}
    aliases: [person, 人员]

  Organization:
    required: [name]
    properties: {name: string, website: url, members: "ref(Person)[]", notes: string, tags: "string[]"}
    aliases: [organization, 组织]

  Project:
    required: [name]
    properties:
      name: string
      description: string
      status:
        enum: [planning, active, paused, completed, archived]
        default: active
        aliases: {in progress: active, in_progress: active, 进行中: active, done: completed, 已完成: completed}
      owner: ref(Person)
      goals: "ref(Goal)[]"
      start_date: date
      end_date: date
      tags: "string[]"
    validate: "end_date >= start_date"
    aliases: [project, 项目]

  Task:
    required: [title, status]
    properties:
      title: string
      description: string
      status:
        enum: [open, in_progress, blocked, done, cancelled]
        default: open
        aliases: {todo: open, 待办: open, in progress: in_progress, doing: in_progress, 进行中: in_progress, 完成: done}
      priority: {enum: [low, medium, high, urgent]}
      assignee: ref(Person)
      project: ref(Project)
      due: datetime
      estimate_hours: {type: number, min: 0}
      blockers: "ref(Task)[]"
      tags: "string[]"
    aliases: [task, 任务]

  Goal:
    required: [description]
    properties:
      description: string
      target_date: date
      status: {enum: [active, achieved, abandoned], default: active}
    aliases: [goal, 目标]

  Event:
    required: [title]
    properties:
      title: string
      description: string
      start: datetime
      end: datetime
      location: ref(Location)
      attendees: "ref(Person)[]"
      status: {enum: [confirmed, tentative, cancelled]}
    aliases: [event, 会议]

  Location:
    required: [name]
    properties: {name: string, address: string, city: string, country: string, timezone: string}

  Document:
    required: [title]
    properties: {title: string, path: string, url: url, summary: string, tags: "string[]"}

  Note:
    required: [content]
    properties: {content: string, title: string, refs: "ref(Entity)[]", tags: "string[]"}

  Credential:
    required: [service, secret_ref]
    properties: {service: string, secret_ref: string, expires: datetime, scope: "string[]"}
    forbidden_properties: [password, secret, token, key, api_key, private_key]

  Action:
    required: [action, outcome]
    properties:
      action: string
      target: ref(Entity)
      actor: ref(Person)
      at: datetime
      outcome: {enum: [success, failure, pending], default: pending}

relations:
  has_owner: {from_types: [Project, Task, Document], to_types: [Person], cardinality: many_to_one, inverse: owns}
  assigned_to: {from_types: [Task], to_types: [Person], cardinality: many_to_one}
  member_of: {from_types: [Person], to_types: [Organization], cardinality: many_to_many}
  attendee_of: {from_types: [Person], to_types: [Event], cardinality: many_to_many, inverse: has_attendee}
  has_task: {from_types: [Project], to_types: [Task], cardinality: one_to_many, inverse: task_of}
  has_goal: {from_types: [Project], to_types: [Goal], cardinality: one_to_many}
  has_project: {from_types: [Event, Task, Document], to_types: [Project], cardinality: many_to_one}
  for_event: {from_types: [Task, Document], to_types: [Event], cardinality: many_to_one}
  follows_up: {from_types: [Task, Event], to_types: [Event], cardinality: many_to_one}
  located_at: {from_types: [Event, Person], to_types: [Location], cardinality: many_to_one}
  blocks: {from_types: [Task], to_types: [Task], acyclic: true, inverse: blocked_by}
  depends_on: {from_types: [Task, Project], to_types: [Task, Project, Event], acyclic: true}
  mentions: {from_types: [Document, Note], cardinality: many_to_many}
  related_to: {symmetric: true}
  # Lessons are read-only entities here, by their handles: a task can be motivated by a pitfall.
  motivated_by: {from_types: [Task, Project, Goal], to_types: [Guideline, Pitfall, Decision, Model, Process]}
  touches: {from_types: [Task, Project], to_types: [File]}

constraints:
  - "Event: end >= start"
  - "Event: start exists if end exists"
"""
