create table t (id integer primary key, k integer, v text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 250000)
  insert into t select i, (i * 2654435761) % 1000003, printf('value %d of a row', i) from n;
create index tk on t (k);
select count(*), sum(length(v)) from t where k in
  (with recursive n(i) as (select 1 union all select i + 1 from n where i < 60000)
   select (i * 40503) % 1000003 from n);
